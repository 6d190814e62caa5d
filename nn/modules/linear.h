// y = x W^T + b (torch.nn.Linear).
//
//   Linear fc(784, 512);             // weight [512, 784], bias [512]
//   Tensor y = fc(ctx, x);           // x [..., 784] -> y [..., 512]
//
// Tensor parallelism (Shoeybi et al. 2019, arXiv:1909.08053, sec. 3) cuts two
// layers in a row among the ranks along "tp", which then add up two tensors, y
// of the second in forward and dx of the first in backward:
//
//   c_fc.set_parallel(Linear::kColumn);    // a rank has some of the outputs
//   c_proj.set_parallel(Linear::kRow);     // and the weights that read those
//   Tensor y = c_proj(ctx, ops::Gelu(ctx, c_fc(ctx, x)));
//
// It has no effect until LocaliseModel() (nn/modules/localise.h). Under one
// rank's part of a mesh, y of a column layer is [..., out / tp], x of a row
// layer [..., in / tp]; the bias of a row layer is whole, and added behind the
// sum.
//
// If ranks share tokens (nn/ops/tokens.h), x of a column layer has the rank's
// own, and so has y of a row layer: the sums become gathers of the first and
// reduce-scatters of the second.
//
// A head over a vocabulary is a column layer that any number of outputs fits:
//
//   lm_head.set_parallel(Linear::kVocabulary);
//
// Its pieces are padded (nn/autograd/sharding.h). A rank puts its outputs
// together with those of the others, and gives whole ones [..., out]; unless
// KeepSplit() is called, for a loss that takes them split (nn/ops/loss.h).
//
// Sums over what ranks share are in blocks if their place says so
// (AxisPlace::blocks), which gives one rank the bits of several.
//
// Default initialisation as in PyTorch: weight and bias from U(-1/sqrt(in),
// 1/sqrt(in)) (kaiming_uniform with a = sqrt(5); He et al. 2015,
// arXiv:1502.01852).

#ifndef NN_MODULES_LINEAR_H_
#define NN_MODULES_LINEAR_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "nn/modules/module.h"
#include "nn/ops/linear.h"
#include "nn/ops/loss.h"

namespace troupe::nn {

class Linear : public Module {
 public:
  struct Options {
    bool bias = true;
    DType dtype = DType::kF32;
    // Whether the layer is the last of a language model. It then leaves out the
    // positions that nobody asks for (TextPlaces::wanted,
    // nn/tensor/text_places.h): a head is a third of a prompt's forward.
    bool is_head = false;
  };
  Linear(std::int64_t in_features, std::int64_t out_features)
      : Linear(in_features, out_features, Options()) {}
  Linear(std::int64_t in_features, std::int64_t out_features,
         const Options& options);

  Tensor Forward(Context& ctx, const Tensor& x) override;

  // Part of the layer that a rank along "tp" has: all of it, some of its
  // outputs, or some of its inputs.
  enum Parallel { kWhole, kColumn, kRow, kVocabulary };
  // Declares what may be cut. `sections` are extents of the outputs of a column
  // layer, or the inputs of a row layer, that are cut each by itself: a layer
  // that computes queries, keys and values has three. Empty: one section. A
  // vocabulary has none.
  void set_parallel(Parallel parallel, std::vector<std::int64_t> sections = {});
  absl::Status Localise(absl::Span<const AxisPlace> places) override;
  // Makes a localised kVocabulary layer give its own outputs [..., columns of
  // the piece] alone, and returns how they are split. Returns none, and does
  // nothing, on any other layer, and on one rank.
  std::optional<ops::SplitLogits> KeepSplit();

 private:
  Parameter& weight_;
  Parameter* bias_ = nullptr;
  const bool is_head_;
  ops::SharedBlocks blocks_;  // null: sums are not in blocks
  AxisPlace tokens_;          // place along the axis, if its ranks share tokens
  Parallel parallel_ = kWhole;
  bool keeps_split_ = false;
};

}  // namespace troupe::nn

#endif  // NN_MODULES_LINEAR_H_
