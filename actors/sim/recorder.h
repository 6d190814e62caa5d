// Records all trace events of a simulated job, in order, and checks the
// invariants that must hold for every interleaving.
//
//   absl::Status status = CheckInvariants(recorder, plan, first_step, steps);
//
// The invariants, for every training step:
//     - each parameter's gradient is complete exactly once on each rank, and in
//       the bucket that the plan says;
//     - each bucket is launched exactly once on each rank, after its gradients
//       are complete, and updated exactly once, after its reduction;
//     - the ranks of a group launch the same collectives in the same order;
//     - no rank keeps the activations of more micro-batches than its table
//       does;
//     - each action begins when all that it needs is done (executed_order.h).

#ifndef ACTORS_SIM_RECORDER_H_
#define ACTORS_SIM_RECORDER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "actors/tracing/trace.h"
#include "pipeline/plan.h"

namespace troupe::actors {

class Recorder : public TraceSink {
 public:
  bool Wants(std::int64_t) const override { return true; }
  void Record(const TraceEvent& event) override { events_.push_back(event); }

  const std::vector<TraceEvent>& events() const { return events_; }

 private:
  std::vector<TraceEvent> events_;
};

// Checks the invariants for the training steps [first_step, steps).
//   kFailedPrecondition: names the invariant, rank, step and the event.
absl::Status CheckInvariants(const Recorder& recorder,
                             const pipeline::Plan& plan,
                             std::int64_t first_step, std::int64_t steps);

}  // namespace troupe::actors

#endif  // ACTORS_SIM_RECORDER_H_
