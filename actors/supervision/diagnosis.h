// The supervisor's part in a failure: asks the ranks what they wait for, again
// and again, until the cause of the job's failure is decided (root-cause
// analysis; job_failure.h has the decision).
//
//   Diagnosis diagnosis;
//   diagnosis.Init(self, process, crew);
//   diagnosis.Begin(failure);               // the first, once the crew began
//   diagnosis.Add(later);                   // another Failure
//   diagnosis.OnAsk();                      // by ask_atom, from itself
//   diagnosis.Add(answer);                  // RankWaits
//   if (diagnosis.Settle()) return End(diagnosis.decision());
//
// A failure that no wait can explain is the decision at once, without a
// question, and so is any failure of a crew that never was complete.
//
// The caller drops messages of another generation, and those that come before
// Begin() or after the end of the job.
//
// Threads: the supervisor's strand.

#ifndef ACTORS_SUPERVISION_DIAGNOSIS_H_
#define ACTORS_SUPERVISION_DIAGNOSIS_H_

#include <optional>

#include "absl/status/status.h"
#include "actors/protocol/messages.h"
#include "actors/setup/process_context.h"
#include "actors/supervision/crew.h"
#include "actors/supervision/job_failure.h"

namespace troupe::actors {

class Diagnosis {
 public:
  using Self = SupervisorActor::pointer;

  void Init(Self self, ProcessContextPtr process, CrewPtr crew);

  // Keeps a failure that comes before the crew has begun, unless another one is
  // kept already.
  void Keep(const Failure& failure) { failure_.Keep(failure); }
  const std::optional<Failure>& kept() const { return failure_.kept(); }
  // Starts with the first failure of the job.
  void Begin(const Failure& failure);
  // Adds a later failure, or a rank's answer to AskWaits.
  template <typename Message>
  void Add(const Message& message) {
    failure_.Add(message);
  }
  // Sends AskWaits to the ranks whose waits are not known, and `ask` to the
  // supervisor, to be called again, unless the decision is made.
  void OnAsk();
  // Forgets the failure, for one that replaces it.
  void Reset() { failure_.Reset(); }

  // Makes the decision if the time for it has come. Returns whether it is made.
  bool Settle() { return failure_.Settle(self_->clock().now()); }
  // Returns how the job ends. Valid once the decision is made.
  const absl::Status& decision() const { return failure_.decision(); }

 private:
  Self self_ = nullptr;
  ProcessContextPtr process_;
  CrewPtr crew_;
  JobFailure failure_;
};

}  // namespace troupe::actors

#endif  // ACTORS_SUPERVISION_DIAGNOSIS_H_
