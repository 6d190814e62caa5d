// The promise of DDP's static_graph: every step leaves out the same parameters
// as the first one. PyTorch's static_graph believes it; this checks it.
//
//   if (promise.has_value()) {
//     TROUPE_RETURN_IF_ERROR(promise->Check(uses.UnusedHere(), step));
//   } else {
//     promise = StaticUses{uses.UnusedHere(), unused_on_all_ranks};
//   }

#ifndef ACTORS_CHUNKS_STATIC_USES_H_
#define ACTORS_CHUNKS_STATIC_USES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "nn/autograd/parameter.h"

namespace troupe::actors {

struct StaticUses {
  // The trained parameters that the first step has not used: on this rank, and
  // on any.
  std::vector<nn::Parameter*> here, anywhere;

  // Compares what this rank has not used in step `step`, counted from 0.
  //   kFailedPrecondition: names step and parameters.
  absl::Status Check(const std::vector<nn::Parameter*>& unused,
                     std::int64_t step) const;
};

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_STATIC_USES_H_
