#include "actors/spec/optimizer_states.h"

#include <memory>

#include "base/check.h"
#include "nn/arena/parameter_arena.h"
#include "nn/tensor/caching_allocator.h"

namespace troupe::actors {

// Attaches an optimizer to an arena of a single element, and looks which states
// it has added.
absl::StatusOr<std::map<std::string, nn::DType>> OptimizerStates(
    const JobSpec& spec, nn::DType dtype) {
  nn::CachingAllocator memory;
  nn::Parameter parameter;
  parameter.name = "one element";
  parameter.shape = {1};
  parameter.dtype = dtype;
  nn::ParameterArena::Options options;
  options.grad_dtype = spec.plan.grad_dtype;
  TROUPE_ASSIGN_OR_RETURN(
      const std::unique_ptr<nn::ParameterArena> arena,
      nn::ParameterArena::Create({{&parameter}}, options, memory));
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<nn::Optimizer> optimizer,
                          MakeOptimizer(spec));
  TROUPE_RETURN_IF_ERROR(optimizer->Attach(*arena));
  std::map<std::string, nn::DType> states;
  for (const auto& [name, state] : arena->states()) {
    states[name] = state.dtype();
  }
  return states;
}

void SetNeedsOfUpdates(const nn::Optimizer& optimizer,
                       pipeline::ReductionOptions& reductions) {
  reductions.update_needs_all_buckets = optimizer.NeedsAllBuckets();
  reductions.sum_parameters = optimizer.SumsParameters();
}

}  // namespace troupe::actors
