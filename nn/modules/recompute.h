// Chooses the modules of a model whose activations are not kept: backward runs
// them again (activation checkpointing; Chen et al. 2016, arXiv:1604.06174).
//
//   RecomputeOptions options;
//   options.every = 2;                       // every second block, or
//   options.modules = {"layer1.*"};          // modules with these names, or
//   options.budget_bytes = 2e9;              // as few blocks as fit in this
//   status = ApplyRecompute(model, options, {{8, 32, 32, 3}}, Device{});
//
// A *block* is a child of a Sequential of the model, at any depth, that has
// children of its own and is no Sequential: a residual block, a transformer's
// layer. A block that runs again keeps only its input.
//
// Losses, gradients and running statistics have the bits of a model that keeps
// everything (nn/autograd/segment.h names the one exception). The cost is a
// second forward of the blocks.

#ifndef NN_MODULES_RECOMPUTE_H_
#define NN_MODULES_RECOMPUTE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "nn/modules/module.h"

namespace troupe::nn {

// All fields count: a module runs again if any of them selects it.
struct RecomputeOptions {
  // Patterns of full names, as in parameter groups ("blocks.?"); the modules
  // below one that matches run again with it.
  std::vector<std::string> modules;
  // Selects blocks 0, every, 2 every, ...; 0: none, 1: all.
  int every = 0;
  // Limit on the bytes of one micro-batch's activations that are kept for
  // backward. As few blocks as possible run again, those that save most first.
  std::optional<double> budget_bytes;
};

struct ModelBlock {
  std::string name;  // "layer1.0"
  Module* module = nullptr;
};

// The blocks of a model, in order.
std::vector<ModelBlock> BlocksOf(Module& model);

// Sets Module::recomputes(); modules that are not selected keep their setting.
// `input`: the model's input for one micro-batch, used with a budget.
//   kInvalidArgument: `every` is negative, a pattern matches no module, or one
//     that takes several tensors.
//   kResourceExhausted: the budget is too small even if every block runs again;
//     the message has the bytes needed.
//   Errors of a shape-only forward, for a budget.
absl::Status ApplyRecompute(Module& model, const RecomputeOptions& options,
                            const TensorSpec& input, Device device);

// Returns the bytes kept for backward after a forward of the model on `inputs`:
// the outputs of all ops, except within modules that run again, and the tensors
// of `stashed` that the model, as a part of another, pops. An upper estimate.
absl::StatusOr<double> KeptActivationBytes(Module& model,
                                           absl::Span<const TensorSpec> inputs,
                                           const StashedTensors& stashed,
                                           Device device);

}  // namespace troupe::nn

#endif  // NN_MODULES_RECOMPUTE_H_
