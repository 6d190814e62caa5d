// Declares names that the usage comments in actors/supervision/ leave
// undeclared.

#ifndef TESTS_USAGE_WORDS_ACTORS_SUPERVISION_H_
#define TESTS_USAGE_WORDS_ACTORS_SUPERVISION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "actors/caf/caf.h"
#include "actors/checkpoint/writer.h"
#include "actors/protocol/messages.h"
#include "actors/protocol/report_queue.h"
#include "actors/setup/process_context.h"
#include "actors/setup/resume.h"
#include "actors/setup/roster.h"
#include "actors/setup/run_span.h"
#include "actors/spec/job_spec.h"
#include "actors/supervision/crew.h"
#include "actors/supervision/diagnosis.h"
#include "actors/supervision/held_verdict.h"
#include "actors/supervision/job_failure.h"
#include "actors/supervision/saving.h"
#include "actors/supervision/spawn_crew.h"
#include "actors/supervision/watchdog.h"
#include "pipeline/plan.h"

namespace troupe::actors::usage {

extern const pipeline::Plan plan;
extern caf::actor_system& system;
extern const ProcessContextPtr process;
extern std::shared_ptr<const Checkpoint> checkpoint;
extern std::int64_t step;

namespace crew_h {
extern const CrewPtr crew;
extern const Crew::Self self;
extern const std::int32_t generation;
extern const caf::down_msg down;
extern const EndRank end;
}  // namespace crew_h

namespace diagnosis_h {
extern const Diagnosis::Self self;
extern const CrewPtr crew;
extern const Failure failure, later;
extern const RankWaits answer;
absl::Status End(const absl::Status& status);
}  // namespace diagnosis_h

namespace due_work_h {
extern const std::shared_ptr<const JobSpec> spec;
extern const std::shared_ptr<const RunSpan> span;
extern const Resume resume;
EvaluationReport Evaluate(std::int64_t step);
void Save(const std::optional<EvaluationState>& state);
extern JobResult result;
}  // namespace due_work_h

namespace evaluation_round_h {
extern const Evaluated part_of_0, part_of_1;
extern const std::shared_ptr<const JobSpec> spec;
}  // namespace evaluation_round_h

namespace evaluation_track_h {
extern const std::shared_ptr<const JobSpec> spec;
extern const Resume resume;
extern const EvaluationReport report;
}  // namespace evaluation_track_h

namespace held_verdict_h {
extern const Failure failure;
extern const Roster* roster;
extern const HeldVerdict::TimePoint now;
extern const RankWaits answer;
void Ask(int rank);
absl::Status End(const absl::Status& status);
}  // namespace held_verdict_h

namespace job_failure_h {
extern const Failure report;
extern const Roster* roster;
extern const JobFailure::TimePoint now;
extern const RankWaits answer;
void Ask(int rank);
absl::Status End(const absl::Status& status);
}  // namespace job_failure_h

namespace milestones_h {
extern const std::shared_ptr<const JobSpec> spec;
extern const std::shared_ptr<const RunSpan> span;
}  // namespace milestones_h

namespace report_outbox_h {
extern const std::shared_ptr<const JobSpec> spec;
extern const std::shared_ptr<const RunSpan> span;
extern const Progress progress;
extern const double seconds;
extern const EvaluationReport evaluation;
void Send(std::vector<Report> batch);
}  // namespace report_outbox_h

namespace save_round_h {
extern const ShardSummary summary_of_0, summary_of_1;
}

namespace saving_h {
extern const Saving::Self self;
extern const ProcessContextPtr process;
extern const CrewPtr crew;
extern const std::optional<EvaluationState> evaluations;
extern const SnapshotTaken taken;
extern const CheckpointOpened opened;
extern const ShardSaved shard;
extern const CheckpointSaved saved;
extern const Failure failure;
}  // namespace saving_h

namespace step_grants_h {
extern const double seconds;
void SendGrants(std::int64_t until);
void Evaluate();
}  // namespace step_grants_h

namespace step_reports_h {
extern const std::unique_ptr<const JobSpec> spec;
extern const std::shared_ptr<const RunSpan> span;
extern const Progress progress;
extern const double seconds;
}  // namespace step_reports_h

namespace wait_graph_h {
extern const std::vector<RankWaits> answers;
}

namespace watchdog_h {
extern const Watchdog::TimePoint now;
void CheckAt(Watchdog::TimePoint time);
}  // namespace watchdog_h

}  // namespace troupe::actors::usage

#endif  // TESTS_USAGE_WORDS_ACTORS_SUPERVISION_H_
