// A rank among fakes: credits of its loader, prefetch of evaluations, and
// messages of another generation.

#include "actors/strands/rank.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "actors/setup/job_setup.h"
#include "gtest/gtest.h"
#include "tests/actors/simulated_system.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

constexpr std::int64_t kTestBatches = 9;

// Requests that the fakes received.
struct Seen {
  std::int64_t loaded_train = 0, loaded_evaluate = 0;  // numbers of steps
  std::vector<RunSteps> runs;
  std::vector<std::string> told;  // messages to the supervisor
  std::vector<RankWaits> answers;
  int copies = 0;
};

// Loads batches of 1 MiB, so that each one is a chunk.
LoaderActor::behavior_type FakeLoader(LoaderActor::pointer, Seen* seen) {
  auto allocator = std::make_shared<nn::CachingAllocator>();
  return {[=](const LoadRequest& request) {
    Loaded loaded{request.kind, request.first, {}};
    std::int64_t count = request.count;
    if (request.kind == StepKind::kEvaluate) {
      const std::int64_t left = kTestBatches - request.first;
      count = std::max<std::int64_t>(0, std::min(count, left));
      seen->loaded_evaluate += count;
    } else {
      seen->loaded_train += count;
    }
    data::Batch batch;
    batch.inputs = nn::Tensor::Empty({1 << 18}, nn::DType::kF32, *allocator);
    batch.targets = batch.inputs;
    loaded.steps.assign(count, StepBatches{batch});
    return loaded;
  }};
}

ComputeActor::behavior_type FakeCompute(ComputeActor::pointer, Seen* seen) {
  return {
      [](const ComputePeersPtr&) {},
      [=](const RunSteps& run) { seen->runs.push_back(run); },
      [](const Launched&) {},
      [](const Transfer&) {},
      [](resume_atom) {},
      [](drive_atom) {},
      [=](snapshot_atom, const TakeSnapshot& take) -> SnapshotPtr {
        seen->copies += take.copies;
        auto snapshot = std::make_shared<Snapshot>();
        snapshot->step = take.step;
        if (take.compares) snapshot->hashes = {17};
        return snapshot;
      },
  };
}

// CAF takes the address of the arguments, so there is one (docs/caf.md).
CommActor::behavior_type FakeComm(CommActor::pointer, Seen*) {
  return {[](const Launch&) {}, [](drive_atom) {}};
}

CheckpointerActor::behavior_type FakeCheckpointer(CheckpointerActor::pointer,
                                                  Seen* seen) {
  return {
      [](const BeginCheckpoint&) {},
      [=](const WriteShard& shard) {
        seen->told.push_back(absl::StrCat("write shard ", shard.shard,
                                          " of step ", shard.snapshot->step));
      },
      [](const CommitCheckpoint&) {}};
}

SupervisorActor::behavior_type FakeSupervisor(SupervisorActor::pointer,
                                              Seen* seen) {
  const auto tell = [=](const std::string& what) {
    seen->told.push_back(what);
  };
  return {
      [](begin_atom) {},
      [=](const Progress& progress) {
        tell(absl::StrCat("progress ", progress.first, "+",
                          progress.losses.size()));
      },
      [=](const Alive&) { tell("alive"); },
      [=](const Evaluated& evaluated) {
        tell(absl::StrCat("evaluated ", FromBits(evaluated.loss.count)));
      },
      [=](const SnapshotTaken& taken) {
        tell(absl::StrCat("copied ", taken.step));
        for (std::uint64_t hash : taken.hashes) tell(absl::StrCat(hash));
      },
      [](const CheckpointOpened&) {},
      [](const ShardSaved&) {},
      [](const CheckpointSaved&) {},
      [=](const RankWaits& answer) { seen->answers.push_back(answer); },
      [=](const Failure& failure) {
        tell(absl::StrCat(failure.actor, " of generation ", failure.generation,
                          ": ", failure.message));
      },
      [](halt_atom) {},
      [](reported_atom) {},
      [](watch_atom) {},
      [](ask_atom) {},
  };
}

// Sends AskWaits to `rank`, and records its answer.
caf::behavior Asker(caf::event_based_actor* self, const RankActor& rank,
                    Seen* seen) {
  return {
      [=](const AskWaits& ask) { self->send(rank, ask); },
      [=](const RankWaits& answer) { seen->answers.push_back(answer); },
  };
}

class RankTest : public testing::Test {
 protected:
  void SetUp() override {
    JobSpec spec = TinyCnnJob(1, 100);
    spec.prefetch_steps = 4;
    process_ = SetUpJob(spec, /*observer=*/nullptr)->process;
    auto& system = system_.get();
    RankStrands strands;
    strands.loader = system.spawn(FakeLoader, &seen_);
    strands.compute = compute_ = system.spawn(FakeCompute, &seen_);
    strands.comm = system.spawn(FakeComm, &seen_);
    strands.checkpointer = system.spawn(FakeCheckpointer, &seen_);
    rank_ = system.spawn(RankBehavior, process_->ranks[0],
                         system.spawn(FakeSupervisor, &seen_), strands);
    asker_ = system.spawn(Asker, rank_, &seen_);
    system_.RunAll();
  }
  void TearDown() override { Send(EndRank{1, 0, ""}); }

  template <typename Message>
  void Send(const Message& message) {
    caf::anon_send(rank_, message);
    system_.RunAll();
  }
  // Reports the end of the compute strand's oldest run.
  void EndRun() {
    const RunSteps run = seen_.runs.front();
    seen_.runs.erase(seen_.runs.begin());
    StepsDone done;
    done.kind = run.kind;
    done.first = run.first;
    done.losses.assign(run.steps.size(), LossBits{Bits(1), Bits(2), Bits(0)});
    Send(done);
  }
  std::string Told() {
    return absl::StrJoin(std::exchange(seen_.told, {}), ", ");
  }

  SimulatedSystem system_;
  Seen seen_;
  ProcessContextPtr process_;
  ComputeActor compute_;
  RankActor rank_;
  caf::actor asker_;
};

TEST_F(RankTest, LoadsAheadAndRunsWhatIsGranted) {
  EXPECT_EQ(seen_.loaded_train, 4) << "prefetch_steps";
  EXPECT_EQ(seen_.runs.size(), 0u);
  Send(Grant{1, 3});
  EXPECT_EQ(seen_.runs.size(), 2u) << "credits of the compute strand";
  EXPECT_EQ(seen_.loaded_train, 6);
  EndRun();
  EXPECT_EQ(seen_.runs.size(), 2u);
  EndRun();
  EXPECT_EQ(seen_.runs.size(), 1u) << "step 4 is not granted";
  EXPECT_EQ(Told(), "progress 0+1, progress 1+1");
}

TEST_F(RankTest, EvaluationIsLoadedAheadUnderTheSameCredits) {
  Send(Evaluate{1, 0});
  EXPECT_EQ(seen_.runs.size(), 2u);
  EXPECT_EQ(seen_.loaded_evaluate, 4 + 2) << "prefetch_steps, and two runs";
  for (int batch = 0; batch < kTestBatches; ++batch) {
    ASSERT_FALSE(seen_.runs.empty()) << batch;
    EXPECT_EQ(seen_.runs.front().kind, StepKind::kEvaluate);
    EXPECT_EQ(seen_.runs.front().first, batch);
    EXPECT_LE(seen_.loaded_evaluate, batch + 4 + 2);
    EndRun();
  }
  EXPECT_EQ(seen_.loaded_evaluate, kTestBatches);
  EXPECT_EQ(Told(),
            "alive, alive, alive, alive, alive, alive, alive, alive, alive, "
            "evaluated 18");
  Send(Evaluate{1, 0});
  EXPECT_EQ(seen_.runs.size(), 2u) << "and once more";
}

TEST_F(RankTest, OldMessagesAreDropped) {
  Send(Grant{0, 50});
  Send(Evaluate{0, 0});
  Send(TakeSnapshot{0, 0});
  Send(SaveShard{0, 0, 1, /*writer=*/0, /*writers=*/1, "folder"});
  Send(EndRank{0, 13, "of the past"});
  EXPECT_EQ(seen_.runs.size(), 0u);
  EXPECT_EQ(seen_.loaded_evaluate, 0);
  EXPECT_EQ(seen_.copies, 0);
  EXPECT_EQ(Told(), "");
  Send(Grant{1, 1});
  EXPECT_EQ(seen_.runs.size(), 1u) << "it is still there";
}

TEST_F(RankTest, SaysWhatItDoesWhereItWaitsForNobody) {
  const auto ask = [&](std::int32_t generation) {
    caf::anon_send(asker_, AskWaits{generation});
    system_.RunAll();
    return seen_.answers.empty() ? RankWaits() : seen_.answers.back();
  };
  EXPECT_EQ(ask(0).doing, "") << "of another generation";
  EXPECT_EQ(ask(1).doing, "idle, all granted steps done");
  EXPECT_FALSE(ask(1).busy);
  Send(Grant{1, 1});
  EXPECT_EQ(ask(1).doing, "about to compute");
  EXPECT_TRUE(ask(1).busy);
  StepPosition& position = *process_->ranks[0]->position;
  position.BeginStep(StepKind::kTrain, 0);
  EXPECT_EQ(ask(1).doing, "computing step 1");
  EXPECT_TRUE(ask(1).busy);
  position.BeginStep(StepKind::kShareBuffers, 1);
  EXPECT_EQ(ask(1).doing, "sharing buffers after step 1");
  position.EndStep();
  EndRun();
  EXPECT_EQ(ask(1).doing, "idle, all granted steps done");
  // The rank lives until EndRank, even if its strands end.
  caf::anon_send_exit(compute_, caf::exit_reason::kill);
  system_.RunAll();
  EXPECT_EQ(ask(1).doing, "stopped, since it has failed");
  EXPECT_FALSE(ask(1).busy);
}

TEST_F(RankTest, KeepsItsCopyUntilItIsToldWhereTo) {
  Send(TakeSnapshot{1, 8});
  EXPECT_EQ(Told(), "copied 8");
  Send(SaveShard{1, 8, 1, /*writer=*/0, /*writers=*/1, "folder"});
  EXPECT_EQ(Told(), "write shard 0 of step 8");
  Send(SaveShard{1, 9, 1, /*writer=*/0, /*writers=*/1, "folder"});
  EXPECT_EQ(Told(),
            "rank of generation 1: asked to save step 9, of which it has no "
            "copy");
}

TEST_F(RankTest, MayHashItsStateAndKeepNoCopy) {
  Send(TakeSnapshot{1, 8, /*copies=*/false, /*compares=*/true});
  EXPECT_EQ(Told(), "copied 8, 17");
  EXPECT_EQ(seen_.copies, 0);
  Send(TakeSnapshot{1, 9, /*copies=*/false});
  EXPECT_EQ(Told(), "copied 9");
  Send(SaveShard{1, 8, 1, /*writer=*/0, /*writers=*/1, "folder"});
  EXPECT_EQ(Told(),
            "rank of generation 1: asked to save step 8, of which it has no "
            "copy");
}

TEST_F(RankTest, AStrandThatEndsWithoutAWordIsNamed) {
  caf::anon_send_exit(compute_, caf::exit_reason::kill);
  system_.RunAll();
  const std::string told = Told();
  EXPECT_NE(told.find("compute of generation 1: "), std::string::npos) << told;
  // The rank's group is aborted, so that its peers notice.
  EXPECT_FALSE(process_->ranks[0]
                   ->groups.Of(pipeline::GroupId::kDpPp)
                   .Start(comm::Barrier(), comm::Event())
                   .ok());
}

}  // namespace
}  // namespace troupe::actors
