#include "actors/strands/reporter.h"

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/protocol/strand_guard.h"
#include "base/exception_text.h"
#include "base/field_error.h"

namespace troupe::actors {
namespace {

void Call(JobObserver& observer, const Report& report) {
  if (const auto* steps = std::get_if<std::vector<StepReport>>(&report)) {
    observer.OnSteps(*steps);
  } else if (const auto* evaluation = std::get_if<EvaluationReport>(&report)) {
    observer.OnEvaluation(*evaluation);
  } else {
    const auto& checkpoint = std::get<CheckpointReport>(report);
    observer.OnCheckpoint(checkpoint.step, checkpoint.path);
  }
}

// Passes the reports to the observer, which is code of the user and may throw.
absl::Status Deliver(JobObserver* observer,
                     const std::vector<Report>& reports) {
  if (observer == nullptr) return absl::OkStatus();
  try {
    for (const Report& report : reports) Call(*observer, report);
    return absl::OkStatus();
  } catch (...) {
    return absl::InternalError(base::ExceptionText(std::current_exception()));
  }
}

}  // namespace

// Sets the outcome if the reporter has thrown, or no actor is left that could
// send FinishReports.
ReporterState::~ReporterState() {
  if (process == nullptr || process->outcome.HasBeenSet()) return;
  process->outcome.Set(absl::InternalError(
      "the job ended without a result; one of its actors has thrown"));
}

ReporterActor::behavior_type ReporterBehavior(
    ReporterActor::stateful_pointer<ReporterState> self,
    ProcessContextPtr process, SupervisorActor supervisor) {
  const FailureSource source = {supervisor, process->generation, /*rank=*/-1,
                                "observer"};
  self->state.process = std::move(process);
  return {[=](const std::vector<Report>& reports) {
            ReporterState& state = self->state;
            if (state.status.ok()) {
              state.status = Deliver(state.process->observer, reports);
              if (!state.status.ok()) {
                self->send(supervisor, MakeFailure(source, state.status));
              }
            }
            self->send(supervisor, reported_atom::value);
          },
          [=](FinishReports& last) {
            ReporterState& state = self->state;
            if (state.status.ok()) {
              state.status = Deliver(state.process->observer, last.reports);
            }
            // The observer may have failed in an earlier batch, and the job
            // have ended before its Failure arrived.
            if (!state.status.ok() && last.result.ok()) {
              last.result = base::WithMessage(
                  state.status,
                  absl::StrCat("observer: ", state.status.message()));
            }
            state.process->outcome.Set(std::move(last.result));
            self->quit();
          }};
}

}  // namespace troupe::actors
