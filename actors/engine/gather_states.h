// Gives the first replica of a stage the whole states of its optimizer, of
// which each replica has slices (pipeline::PlanChoices::owners()), for a
// checkpoint.
//
//   TROUPE_RETURN_IF_ERROR(GatherStates(parts, step));
//   // On the first replica, the next snapshot has them (snapshot.h).
//
// All replicas call it between steps, after step `step`. It does nothing if
// each replica has all states.
//
// Cost: the first replica receives the states of the others, bucket by bucket,
// in host memory that becomes that of its snapshot.
// Errors: kResourceExhausted if there is no such memory, which names the state;
// those of LayerCollectives::Run().
// Threads: the compute strand's.

#ifndef ACTORS_ENGINE_GATHER_STATES_H_
#define ACTORS_ENGINE_GATHER_STATES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "actors/engine/engine_parts.h"

namespace troupe::actors {

absl::Status GatherStates(const EngineParts& parts, std::int64_t step);

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_GATHER_STATES_H_
