// The supervisor of a job: grants steps, gathers progress, decides when to
// evaluate and save, and ends the job, well or with the first failure.
//
// Takes  begin                        from whoever spawned the crew
//        Progress, Evaluated          from the ranks
//        Failure                      from any actor of the job
//        halt                         a stop was requested
// Gives  Grant, evaluate, snapshot to the ranks; SaveRequest to the
//        checkpointer; reports to the observer; the outcome
//
// A checkpoint stops the ranks only for their snapshots: it is written while
// training goes on, one at a time; the end waits for the last.
//
// A job goes from boundary to boundary: the next evaluation, checkpoint, or
// its end. Steps up to a boundary are granted in windows, so that a stop takes
// effect within one; at the boundary every rank has done exactly these steps,
// and what is due there happens.
//
// The first failure counts: it aborts all collectives, so that no rank waits
// for one that is gone, ends every actor, and becomes the outcome. Silence is a
// failure too: a job that makes no progress for JobSpec::timeout says which
// rank stands where.

#ifndef ACTORS_SUPERVISOR_H_
#define ACTORS_SUPERVISOR_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages.h"
#include "actors/process_context.h"

namespace troupe::actors {

// All actors of a job but the supervisor.
struct Crew {
  std::vector<RankActor> ranks;
  CheckpointerActor checkpointer;
  // Every one of them, to be watched and ended, with what it is called.
  struct Member {
    caf::strong_actor_ptr actor;
    int rank;
    std::string name;
  };
  std::vector<Member> members;
};
using CrewPtr = std::shared_ptr<Crew>;

class SupervisorState {
 public:
  static inline const char* name = "supervisor";
  using Self = SupervisorActor::stateful_pointer<SupervisorState>;

  void Init(Self self, ProcessContextPtr process, CrewPtr crew);
  void OnBegin();
  void OnProgress(const Progress& progress);
  void OnEvaluated(const Evaluated& evaluated);
  void OnFailure(const Failure& failure);
  void OnHalt();
  void OnWatch();
  void OnDown(const caf::actor_addr& source, const caf::error& reason);

 private:
  // kSaving: the ranks stand still, for their snapshots or because an earlier
  // checkpoint is still being written.
  enum class Doing { kSteps, kEvaluating, kSaving, kEnded };

  std::int64_t Committed() const;  // by the slowest rank
  double Seconds() const;
  std::int64_t NextBoundary() const;
  void GrantSteps();
  void ReportSteps(const Progress& progress);
  // All ranks stand at a boundary: does what is due, else goes on.
  void AtBoundary();
  void Evaluate();
  void Save();
  void OnSnapshot(std::size_t stage, const SnapshotPtr& snapshot);
  void OnSaved(const Saved& saved);
  void Fail(const Failure& failure);
  void End(absl::StatusOr<JobResult> result);
  bool CheckpointDue() const;
  bool EvaluationDue() const;
  bool AtEnd() const;

  Self self_ = nullptr;
  ProcessContextPtr process_;
  CrewPtr crew_;
  Doing doing_ = Doing::kSteps;
  std::chrono::steady_clock::time_point start_;

  std::vector<std::int64_t> done_;  // by rank: steps committed
  std::int64_t granted_ = 0;
  std::int64_t boundary_ = 0;
  std::int64_t window_ = 1;
  std::int64_t window_max_ = 0;
  double window_seconds_ = 0;  // when the current pace was last taken
  std::int64_t window_step_ = 0;
  // Before `begin` the crew is still being spawned, in another thread: what
  // arrives until then is kept.
  bool begun_ = false;
  std::optional<Failure> early_failure_;
  bool halted_ = false;
  std::int64_t evaluated_at_ = -1, snapshot_at_ = -1;

  std::vector<Evaluated> evaluations_;
  SaveRequest save_;
  std::size_t snapshots_left_ = 0;
  bool writing_ = false;  // one checkpoint at a time is with the checkpointer
  JobResult result_;
  std::int64_t progress_marks_ = 0, watched_marks_ = -1;
};

SupervisorActor::behavior_type SupervisorBehavior(SupervisorState::Self self,
                                                  ProcessContextPtr process,
                                                  CrewPtr crew);

}  // namespace troupe::actors

#endif  // ACTORS_SUPERVISOR_H_
