// A test fixture with the supervisor of a job and fakes: ranks and a checkpoint
// writer that log the messages they receive, and answer as the test sets.

#ifndef TESTS_ACTORS_SUPERVISION_SUPERVISOR_FIXTURE_H_
#define TESTS_ACTORS_SUPERVISION_SUPERVISOR_FIXTURE_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "actors/setup/job_setup.h"
#include "actors/strands/reporter.h"
#include "actors/supervision/supervisor.h"
#include "gtest/gtest.h"
#include "tests/actors/simulated_system.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {

inline constexpr std::int32_t kNow = 1, kBefore = 0;

using Log = std::vector<std::string>;

// Answers of ranks to AskWaits; ranks without an entry do not answer.
using Answers = std::map<int, RankWaits>;

inline RankActor::behavior_type FakeRank(RankActor::pointer self, int rank,
                                         Log* log, const Answers* answers) {
  const auto note = [=](const std::string& what) {
    log->push_back(absl::StrCat("rank ", rank, ": ", what));
  };
  return {
      [=](const Grant& grant) { note(absl::StrCat("grant ", grant.until)); },
      [=](const StepsDone&) { note("steps done"); },
      [=](const Evaluate& order) { note(absl::StrCat("eval ", order.step)); },
      [=](const TakeSnapshot& order) {
        note(absl::StrCat("copy ", order.step));
      },
      [=](const SaveShard& order) {
        note(absl::StrCat("save ", order.step, " to ", order.folder));
      },
      [=](const AskWaits&) {
        note("asked");
        const auto answer = answers->find(rank);
        if (answer == answers->end()) return;
        caf::anon_send(caf::actor_cast<caf::actor>(self->current_sender()),
                       answer->second);
      },
      [=](const EndRank& end) {
        note(end.code == 0 ? "end" : absl::StrCat("end: ", end.message));
        self->quit();
      },
  };
}

inline CheckpointerActor::behavior_type FakeCheckpointer(
    CheckpointerActor::pointer, Log* log) {
  return {
      [=](const BeginCheckpoint& order) {
        log->push_back(absl::StrCat("open ", order.step));
      },
      [=](const WriteShard&) { log->push_back("write"); },
      [=](const CommitCheckpoint& order) {
        log->push_back(absl::StrCat("commit ", order.step, " of ",
                                    order.shards.size(), " shards"));
      },
  };
}

inline absl::Duration HeldVerdictMax() {
  return absl::FromChrono(HeldVerdict::kHeldMax);
}

class SupervisorTest : public testing::Test {
 protected:
  // Starts the supervisor, with two ranks or the number that `spec` has.
  void Begin(const JobSpec& spec) {
    JobSpec used = spec;
    used.checkpoint.compare_replicas = compares_;
    const auto process = SetUpJob(used, /*observer=*/nullptr)->process;
    process->links.roster = roster_;
    process_ = process;
    auto crew = std::make_shared<Crew>();
    supervisor_ =
        SpawnStrand(system_.get(), SupervisorBehavior, process_, crew);
    crew->reporter =
        SpawnStrand(system_.get(), ReporterBehavior, process_, supervisor_);
    crew->checkpointers = {system_.get().spawn(FakeCheckpointer, &log_)};
    for (int rank = 0; rank < process_->plan->mesh.size(); ++rank) {
      crew->ranks.push_back(
          system_.get().spawn(FakeRank, rank, &log_, &answers_));
    }
    Send(begin_atom::value);
  }
  // Ends the actors that a failed check has left behind.
  void TearDown() override {
    if (!ended()) Send(Failure{1, -1, "test", 10, "over"});
    if (!ended()) system_.Advance(absl::FromChrono(HeldVerdict::kCauseMax));
  }
  template <typename Message>
  void Send(const Message& message) {
    caf::anon_send(supervisor_, message);
    system_.RunAll();
  }
  // Sends all messages of a checkpoint of one shard, from the ranks' copies to
  // its name.
  void FinishCheckpoint(std::int64_t step) {
    Send(SnapshotTaken{kNow, 0, step, {}});
    Send(CheckpointOpened{kNow, step, "folder"});
    Send(ShardSaved{kNow, step, ShardSummary()});
    Send(CheckpointSaved{kNow, step, "path"});
  }
  // Returns the messages that the fakes have received since the last call.
  std::string Heard() { return absl::StrJoin(std::exchange(log_, {}), ", "); }
  static Progress StepsOf(std::int32_t generation, int rank, std::int64_t first,
                          int count) {
    Progress progress{generation, rank, first, {}};
    progress.losses.assign(count, LossBits{Bits(1), Bits(1), Bits(0)});
    return progress;
  }
  bool ended() const { return process_->outcome.HasBeenSet(); }
  absl::Status verdict() const { return process_->outcome.Wait().status(); }

  bool compares_ = false;  // whether checkpoints ask all replicas for hashes
  SimulatedSystem system_;
  std::shared_ptr<const Roster> roster_;
  Answers answers_;
  ProcessContextPtr process_;
  SupervisorActor supervisor_;
  Log log_;
};

inline JobSpec Plain(std::int64_t steps) {
  JobSpec spec = TinyCnnJob(2, steps);
  spec.test = nullptr;
  return spec;
}

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_SUPERVISION_SUPERVISOR_FIXTURE_H_
