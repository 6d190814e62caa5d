// Calls the job's observer, on a strand of its own: observers write to slow
// terminals and disks, and must not delay the supervisor.
//
// Takes  a batch of reports           from the supervisor
//        FinishReports {reports, result}
// Gives  reported to the supervisor, after each batch: its credit for the next
//        one. Sets the job's outcome after FinishReports.
// Fails  with the text of an exception of the observer, as a Failure. Later
//        reports are then dropped, and the outcome is the first failure of the
//        job.
//
// The outcome is set in every case, at the latest when this actor ends.

#ifndef ACTORS_STRANDS_REPORTER_H_
#define ACTORS_STRANDS_REPORTER_H_

#include "absl/status/status.h"
#include "actors/protocol/messages.h"
#include "actors/setup/process_context.h"

namespace troupe::actors {

struct ReporterState {
  static inline const char* name = "observer";

  ~ReporterState();

  ProcessContextPtr process;
  absl::Status status;  // first failure of the observer
};

ReporterActor::behavior_type ReporterBehavior(
    ReporterActor::stateful_pointer<ReporterState> self,
    ProcessContextPtr process, SupervisorActor supervisor);

}  // namespace troupe::actors

#endif  // ACTORS_STRANDS_REPORTER_H_
