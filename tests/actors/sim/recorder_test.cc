// Tests each invariant of the recorder: one event is missing, superfluous or in
// the wrong place.

#include "actors/sim/recorder.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "actors/hooks/gathered_reduction.h"
#include "actors/sim/simulation.h"
#include "gtest/gtest.h"
#include "nn/modules/linear.h"
#include "nn/modules/relu.h"
#include "nn/modules/sequential.h"
#include "tests/actors/sim/small_job.h"

namespace troupe::actors {
namespace {

using Events = std::vector<TraceEvent>;

// A correct run of two ranks and two steps, of which a test edits the events.
class RecorderTest : public testing::Test {
 protected:
  RecorderTest() : RecorderTest(SmallJob({/*ranks=*/2})) {}
  explicit RecorderTest(const JobSpec& spec) : simulation_(spec, {}) {
    EXPECT_TRUE(simulation_.Run().ok());
    events_ = simulation_.recorder().events();
  }

  // Returns the first event of that kind of rank 1 in step 1.
  Events::iterator Find(TraceKind kind, TracePhase phase, int bucket) {
    const auto found =
        std::find_if(events_.begin(), events_.end(), [&](const TraceEvent& e) {
          return e.rank == 1 && e.step == 1 && e.kind == kind &&
                 e.phase == phase && e.bucket == bucket;
        });
    EXPECT_NE(found, events_.end());
    return found;
  }
  Events::iterator Gradient(int bucket) {
    return Find(TraceKind::kGradientComplete, TracePhase::kInstant, bucket);
  }
  Events::iterator Ready(int bucket) {
    return Find(TraceKind::kBucketReady, TracePhase::kInstant, bucket);
  }
  Events::iterator Launched(int bucket) {
    return Find(TraceKind::kCollective, TracePhase::kBegin, bucket);
  }
  Events::iterator Reduced(int bucket) {
    return Find(TraceKind::kCollective, TracePhase::kEnd, bucket);
  }
  Events::iterator Updated(int bucket) {
    return Find(TraceKind::kUpdate, TracePhase::kBegin, bucket);
  }

  // Moves event `what` to just before the earlier event `where`.
  void MoveBefore(Events::iterator where, Events::iterator what) {
    ASSERT_LT(where, what);
    std::rotate(where, what, what + 1);
  }

  std::string Verdict() const {
    Recorder recorder;
    for (const TraceEvent& event : events_) recorder.Record(event);
    return std::string(
        CheckInvariants(recorder, simulation_.plan(), 0, 2).message());
  }
  void ExpectBroken(const std::string& what) const {
    EXPECT_TRUE(absl::StrContains(Verdict(), "invariant broken: rank 1"))
        << Verdict();
    EXPECT_TRUE(absl::StrContains(Verdict(), what)) << Verdict();
  }

  Simulation simulation_;
  Events events_;
};

TEST_F(RecorderTest, ASoundRunIsSound) { EXPECT_EQ(Verdict(), ""); }

TEST_F(RecorderTest, AForwardTooMany) {
  const auto forward = Find(TraceKind::kAction, TracePhase::kBegin, -1);
  ASSERT_EQ(forward->action, pipeline::ActionKind::kForward);
  const TraceEvent again = *forward;
  events_.insert(forward, again);
  ExpectBroken("keeps more activations than its table");
}

TEST_F(RecorderTest, AGradientThatNeverComes) {
  events_.erase(Gradient(0));
  ExpectBroken("step 2, ");
  ExpectBroken("ready before all its gradients are complete");
}

TEST_F(RecorderTest, AGradientThatComesTwice) {
  const TraceEvent again = *Gradient(0);
  events_.insert(Gradient(0), again);
  ExpectBroken("its gradient is complete twice");
}

TEST_F(RecorderTest, AGradientInAnotherBucket) {
  Gradient(0)->bucket = 1;
  ExpectBroken("its gradient is in another bucket than planned");
}

TEST_F(RecorderTest, ABucketThatIsReadyTooEarly) {
  MoveBefore(Gradient(0), Ready(0));
  ExpectBroken("ready before all its gradients are complete");
}

TEST_F(RecorderTest, ABucketLaunchedBeforeItIsReady) {
  MoveBefore(Ready(0), Launched(0));
  ExpectBroken("launched before it was ready");
}

TEST_F(RecorderTest, ABucketThatIsNotLaunched) {
  events_.erase(Launched(0));
  ExpectBroken("not launched exactly once");
}

TEST_F(RecorderTest, ABucketThatIsLaunchedTwice) {
  const TraceEvent again = *Launched(0);
  events_.insert(Launched(0), again);
  ExpectBroken("not launched exactly once");
}

// A run whose reductions have two rounds.
class RoundsRecorderTest : public RecorderTest {
 protected:
  RoundsRecorderTest()
      : RecorderTest([] {
          JobSpec spec = SmallJob({/*ranks=*/2});
          spec.hook = GatherIn(nn::DType::kBF16);
          return spec;
        }()) {}

  // Returns the first event of round 1 of bucket 0, after that of round 0.
  Events::iterator Second(TracePhase phase) {
    const auto first = Find(TraceKind::kCollective, phase, 0);
    return std::find_if(first, events_.end(), [&](const TraceEvent& e) {
      return e.rank == 1 && e.step == 1 && e.phase == phase &&
             e.name == "AR0.1";
    });
  }
};

TEST_F(RoundsRecorderTest, ASoundRunIsSound) { EXPECT_EQ(Verdict(), ""); }

TEST_F(RoundsRecorderTest, ARoundBeforeTheEndOfTheOneBefore) {
  MoveBefore(Reduced(0), Second(TracePhase::kBegin));
  ExpectBroken("launched before the round before it had ended");
}

TEST_F(RoundsRecorderTest, AnotherRoundThanTheNext) {
  Launched(0)->name = "AR0.1";
  ExpectBroken("launched out of the order of its rounds");
}

TEST_F(RoundsRecorderTest, ARoundThatIsLeftOut) {
  events_.erase(Second(TracePhase::kBegin));
  ExpectBroken("not launched exactly once in each round");
}

TEST_F(RoundsRecorderTest, AnUpdateBeforeTheLastRound) {
  MoveBefore(Second(TracePhase::kEnd), Updated(0));
  ExpectBroken("updated before its reduction was there");
}

// The same of two stages, of which the first has no parameters.
class LateRoundsRecorderTest : public RecorderTest {
 protected:
  LateRoundsRecorderTest()
      : RecorderTest([] {
          JobSpec spec = SmallJob({/*ranks=*/2});
          spec.plan.mesh = pipeline::Mesh(/*dp=*/2, /*pp=*/2);
          spec.plan.cuts = {1};
          spec.model = [] {
            auto model = std::make_unique<nn::Sequential>();
            model->Append<nn::ReLU>();
            model->Append<nn::Linear>(4, 2);
            return model;
          };
          spec.hook = GatherIn(nn::DType::kBF16);
          return spec;
        }()) {}
};

TEST_F(LateRoundsRecorderTest, ASoundRunIsSound) {
  ASSERT_EQ(simulation_.plan().ranks[0].train.rounds(), 1);
  EXPECT_EQ(simulation_.plan().rounds(), 2);
  EXPECT_EQ(Verdict(), "");
}

TEST_F(RecorderTest, ABucketUpdatedBeforeItsReduction) {
  MoveBefore(Reduced(0), Updated(0));
  ExpectBroken("updated before its reduction was there");
}

TEST_F(RecorderTest, ABucketThatIsNotUpdated) {
  events_.erase(Updated(0));
  ExpectBroken("not updated exactly once");
}

TEST_F(RecorderTest, ABucketThatIsUpdatedTwice) {
  const TraceEvent again = *Updated(0);
  events_.insert(Updated(0), again);
  ExpectBroken("not updated exactly once");
}

TEST_F(RecorderTest, AnUpdateBeforeTheLoss) {
  const auto loss =
      std::find_if(events_.begin(), events_.end(), [](const TraceEvent& e) {
        return e.rank == 1 && e.step == 1 && e.name == "LR" &&
               e.phase == TracePhase::kEnd;
      });
  std::rotate(loss, loss + 1, Updated(0) + 1);
  ExpectBroken("step 2, UP0: begins before what it needs, the loss");
}

TEST_F(RecorderTest, ABackwardBesideItsForward) {
  const auto forward = Find(TraceKind::kAction, TracePhase::kEnd, -1);
  const auto backward =
      std::find_if(forward, events_.end(), [](const TraceEvent& e) {
        return e.rank == 1 && e.step == 1 && e.name == "B0";
      });
  ASSERT_EQ(forward->name, "F0");
  std::rotate(forward, forward + 1, backward + 1);
  ExpectBroken("step 2, B0: begins before what it needs, F0");
}

TEST_F(RecorderTest, AnotherOrderOfLaunches) {
  const std::string first = Launched(0)->name;
  Launched(0)->name = Launched(1)->name;
  Launched(1)->name = first;
  ExpectBroken("launched [");
}

TEST_F(RecorderTest, AStepThatNobodyRan) {
  Recorder recorder;
  for (const TraceEvent& event : events_) recorder.Record(event);
  const absl::Status status =
      CheckInvariants(recorder, simulation_.plan(), 0, /*steps=*/3);
  EXPECT_TRUE(absl::StrContains(status.message(), "step 3, chunk 0 bucket 0"))
      << status;
}

TEST_F(RecorderTest, AJobThatWasNotPlanned) {
  EXPECT_EQ(CheckInvariants(Recorder(), pipeline::Plan(), 0, 1).message(),
            "the job was not even planned");
}

}  // namespace
}  // namespace troupe::actors
