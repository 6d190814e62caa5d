// Options of pooling beside its window.
//
//   AvgPoolOptions options;
//   options.count_include_pad = false;

#ifndef NN_OPS_POOL_OPTIONS_H_
#define NN_OPS_POOL_OPTIONS_H_

namespace troupe::nn {

struct MaxPoolOptions {
  // Whether windows may extend past the end of the padding, if they begin
  // before it: their number is rounded up.
  bool ceil_mode = false;
};

struct AvgPoolOptions {
  bool ceil_mode = false;
  // Whether means count the padding, as zeros.
  bool count_include_pad = true;
};

}  // namespace troupe::nn

#endif  // NN_OPS_POOL_OPTIONS_H_
