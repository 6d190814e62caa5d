// Chooses the modules of a model whose activations are not kept: backward runs
// them again (activation checkpointing; Chen et al. 2016, arXiv:1604.06174).
//
//   RecomputeOptions options;
//   options.every = 2;                       // every second block, or
//   options.modules = {"layer1.*"};          // those of these names, or
//   options.budget_bytes = 2e9;              // as few blocks as fit in this
//   status = ApplyRecompute(model, options, {{8, 32, 32, 3}}, Device{});
//
// A *block* is a module with children of its own, which is no Sequential, in a
// Sequential of the model, at any depth: a residual block, a transformer's
// layer. A block that runs again keeps its input alone.
//
// Losses, gradients and running statistics have the bits of a model that keeps
// everything (nn/autograd/segment.h names the one exception). The price is a
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

// All parts count: a module runs again where one of them says so.
struct RecomputeOptions {
  // Patterns of full names, as parameter groups have them ("blocks.?"); what is
  // below a module that matches runs again with it.
  std::vector<std::string> modules;
  // Blocks 0, every, 2 every, ...; 0: none, 1: all.
  int every = 0;
  // Limit on the activations of one micro-batch that backward finds kept. As
  // few blocks as possible run again, those that save most first.
  std::optional<double> budget_bytes;
};

struct ModelBlock {
  std::string name;  // "layer1.0"
  Module* module = nullptr;
};

// The blocks of a model, in order.
std::vector<ModelBlock> BlocksOf(Module& model);

// Sets Module::recomputes(); modules that are not chosen keep what they have.
// `input`: what the model takes of a micro-batch, for a budget.
//   kInvalidArgument: `every` is negative, a pattern matches no module, or one
//     that takes several tensors.
//   kResourceExhausted: the budget is too small even where every block runs
//     again; says how much it would take.
//   Errors of a shape-only forward, for a budget.
absl::Status ApplyRecompute(Module& model, const RecomputeOptions& options,
                            const TensorSpec& input, Device device);

// Bytes that backward finds kept after a forward of the model on `inputs`: the
// outputs of all ops, but for those of modules that run again, and what the
// model, as a part of another, pops of `stashed`; an estimate from above.
absl::StatusOr<double> KeptActivationBytes(Module& model,
                                           absl::Span<const TensorSpec> inputs,
                                           const StashedTensors& stashed,
                                           Device device);

}  // namespace troupe::nn

#endif  // NN_MODULES_RECOMPUTE_H_
