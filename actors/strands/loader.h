// The loader of one rank: a strand that reads samples and makes batches.
//
// Takes  LoadRequest {kind, first, count}
// Gives  Loaded: the requested steps; fewer, or none, where an evaluation ends
// Fails  with the dataset's status, as the request's error and as a Failure
//
// The rank's outstanding requests are the credits: the loader itself keeps no
// queue. Steps are addressed by number, so loading ahead changes no state that
// a checkpoint would have to save.

#ifndef ACTORS_STRANDS_LOADER_H_
#define ACTORS_STRANDS_LOADER_H_

#include <memory>
#include <optional>

#include "actors/protocol/messages.h"
#include "actors/setup/rank_context.h"
#include "data/batch_source.h"
#include "nn/tensor/caching_allocator.h"

namespace troupe::actors {

struct LoaderState {
  static inline const char* name = "loader";
  RankContextPtr context;
  std::unique_ptr<nn::CachingAllocator> allocator;
  std::optional<data::BatchSource> train;
  std::optional<data::EvaluationSource> test;
};

LoaderActor::behavior_type LoaderBehavior(
    LoaderActor::stateful_pointer<LoaderState> self, RankContextPtr context,
    SupervisorActor supervisor);

}  // namespace troupe::actors

#endif  // ACTORS_STRANDS_LOADER_H_
