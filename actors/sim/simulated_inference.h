// Simulates a session of a trained model (actors/inference/inference_session.h)
// with the actors of production, in one thread under a seeded scheduler.
//
//   TROUPE_ASSIGN_OR_RETURN(
//       const std::unique_ptr<SimulatedInference> session,
//       SimulatedInference::Open(spec, std::move(saved), {/*seed=*/42}));
//   TROUPE_ASSIGN_OR_RETURN(const nn::Tensor y, session->Run(x));
//   session->trace_hash();     // equal for equal seed, spec, inputs and build
//
// The choices of the seed and the virtual time are those of simulation.h.
// Actors run inside Run() alone.
//
// Threads: one.

#ifndef ACTORS_SIM_SIMULATED_INFERENCE_H_
#define ACTORS_SIM_SIMULATED_INFERENCE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/inference/inference_session.h"
#include "actors/spec/job_spec.h"

namespace troupe::actors {

struct SimulatedInferenceOptions {
  std::uint64_t seed = 0;
  // SimulationOptions::message_time_max.
  absl::Duration message_time_max = absl::ZeroDuration();
  // Limit on the messages of a call, beyond which it fails.
  std::int64_t messages_max = 1'000'000;
};

class SimulatedInference : public InferenceSession {
 public:
  // Errors: the same as InferenceSession::Open().
  static absl::StatusOr<std::unique_ptr<SimulatedInference>> Open(
      const JobSpec& spec, Checkpoint checkpoint,
      const SimulatedInferenceOptions& options);

  // Returns a hash over (actor, message) in the order in which they ran.
  virtual std::uint64_t trace_hash() const = 0;
};

}  // namespace troupe::actors

#endif  // ACTORS_SIM_SIMULATED_INFERENCE_H_
