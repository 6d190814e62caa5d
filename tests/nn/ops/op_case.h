// One op on one shape, as data: inputs, outputs, and the kernel calls between.
// The table of all of them is AllOpCases(); op_suite.h runs it.
//
//   {"add_1000", {Normal({1000}), Normal({1000})}, {Poison({1000})},
//    [](Kernels& k, Inputs in, Outputs out) {
//      return k.Add(in[0], in[1], out[0]);
//    }}
//
// Letters of shapes are the same as in nn/kernels/kernels.h.

#ifndef TESTS_NN_OPS_OP_CASE_H_
#define TESTS_NN_OPS_OP_CASE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "nn/kernels/kernels.h"

namespace troupe::nn {

// Contents of a tensor of a case before the op runs.
struct Operand {
  enum class Fill {
    kNormal,   // draws of mean 0 and variance 1
    kPoison,   // NaN: an output that must be overwritten
    kZero,     //
    kSpecial,  // NaN, infinities, zeros of both signs, tiny and large numbers
    kLabels,   // 0 .. classes - 1, and every fifth is ignored
    kRows,     // 0 .. classes - 1, some of them several times
  };
  Shape shape;
  Fill fill = Fill::kNormal;
  std::optional<DType> dtype;  // set if not the dtype under test
  std::int64_t classes = 0;
};

using Inputs = absl::Span<const Tensor>;
using Outputs = absl::Span<Tensor>;

struct OpCase {
  std::string name;
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
  std::function<absl::Status(Kernels&, Inputs, Outputs)> run;
  // Whether all tensors are [n], and an element's result depends on that
  // element alone: it must have the same bits wherever a range begins or ends.
  bool element_wise = false;
  // Whether kernel sets of devices with queues do not have the op.
  bool host_only = false;
};

constexpr std::int64_t kIgnoredLabel = -100;

std::vector<OpCase> AllOpCases();

}  // namespace troupe::nn

#endif  // TESTS_NN_OPS_OP_CASE_H_
