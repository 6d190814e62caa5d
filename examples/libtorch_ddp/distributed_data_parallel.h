// torch.nn.parallel.DistributedDataParallel for a module of libtorch, over the
// ranks of a program of Troupe.
//
//   void Run(troupe::Rank& rank) {
//     torch::nn::Linear model(10, 5);
//     DistributedDataParallel ddp(rank, model);
//     torch::optim::SGD sgd(model->parameters(), /*lr=*/0.1);
//     sgd.zero_grad();
//     torch::mse_loss(ddp(x), y).backward();  // gradients: means over ranks
//     sgd.step();
//   }
//
// The constructor gives all ranks the parameters and buffers of rank 0. In
// training each forward does so again for the buffers, such as the running
// statistics of batch norms (broadcast_buffers=True).
//
// Errors, threads, lifetime: those of GradientReducer.

#ifndef DISTRIBUTED_DATA_PARALLEL_H_
#define DISTRIBUTED_DATA_PARALLEL_H_

#include <torch/types.h>

#include <cstddef>

#include "actors/tracing/trace.h"
#include "flat_broadcast.h"
#include "gradient_reducer.h"
#include "pipeline/table/schedule.h"
#include "troupe/rank.h"

// `Module`: a holder of a module whose forward takes and returns one tensor, as
// TORCH_MODULE declares it.
template <typename Module>
class DistributedDataParallel {
 public:
  DistributedDataParallel(troupe::Rank& rank, Module module,
                          const ReducerOptions& options = {})
      : module_(module),
        traces_(options.trace != nullptr),
        buffers_(rank, module->buffers()),
        reducer_(rank, module->named_parameters(), options) {
    FlatBroadcast(rank, module->parameters()).Run();
    buffers_.Run();
  }

  at::Tensor operator()(const at::Tensor& input) {
    using troupe::actors::TracePhase;
    using troupe::pipeline::ActionKind;
    if (module_->is_training()) buffers_.Run();
    reducer_.Note(ActionKind::kForward, TracePhase::kBegin);
    const at::Tensor output = module_->forward(input);
    reducer_.Note(ActionKind::kForward, TracePhase::kEnd);
    if (traces_ && output.requires_grad()) {
      output.register_hook([this](const at::Tensor& /*grad*/) {
        reducer_.Note(ActionKind::kBackward, TracePhase::kBegin);
      });
    }
    return output;
  }

  std::size_t buckets() const { return reducer_.buckets(); }

 private:
  Module module_;
  const bool traces_;
  const FlatBroadcast buffers_;
  GradientReducer reducer_;
};

#endif  // DISTRIBUTED_DATA_PARALLEL_H_
