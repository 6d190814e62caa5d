// Calls the job's observer, on a strand of its own: terminals and disks are
// slow, and steps are granted elsewhere.
//
// Takes  a batch of reports           from the supervisor
//        FinishReports {reports, result}
// Gives  reported to the supervisor, after each batch: its credit for the next
//        one; the outcome, when everything is reported
// Fails  with the text of what the observer throws, as a Failure. Later reports
//        are then dropped, and the outcome is the first failure of the job.
//
// Whatever ends it, the outcome is set then.

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
  absl::Status status;  // the observer's first failure
};

ReporterActor::behavior_type ReporterBehavior(
    ReporterActor::stateful_pointer<ReporterState> self,
    ProcessContextPtr process, SupervisorActor supervisor);

}  // namespace troupe::actors

#endif  // ACTORS_STRANDS_REPORTER_H_
