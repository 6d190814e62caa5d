// Before the supervisor reports a lost process, it asks the ranks which ranks
// they wait for: for a limited time, and only those of this attempt of the job.

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/actors/supervision/supervisor_fixture.h"

namespace troupe::actors {
namespace {

// A job of two processes with a rank each, of which process 1 is lost.
class LossTest : public SupervisorTest {
 protected:
  LossTest() {
    Member first, second;
    first.host = "n1";
    second.process = 1;
    second.host = "n2";
    second.pid = 4711;
    roster_ =
        std::make_shared<const Roster>(std::vector<Member>{first, second});
  }
  static Failure Loss() {
    Failure loss = {kNow, -1, "", kUnavailable, "process 1 is lost: why"};
    loss.process = 1;
    return loss;
  }
  static Failure GivenUp() {
    return {kNow, 0, "compute", kCancelled, "rank 1 has ended"};
  }
  static RankWaits Computing(int rank) {
    RankWaits answer = {kNow, rank, "computing step 1", /*busy=*/true, {}};
    return answer;
  }
  static RankWaits WaitingFor(int rank, int other) {
    RankWait wait;
    wait.what = "all_reduce(sum, f32 x 4), collective 1";
    wait.group = "replicas";
    wait.collective = 1;
    wait.step = 0;
    wait.part = "bucket 1";
    wait.ranks = {other};
    wait.nanos = 7'000'000;
    return {kNow, rank, "", /*busy=*/false, {wait}};
  }
  static constexpr int kCancelled = 1, kUnavailable = 14, kDataLoss = 15;
  static constexpr char kVerdict[] =
      "process 1 is lost: why\n"
      "the root of the wait is rank 1 in process 1 (n2, pid 4711, rank 1), "
      "which is lost\n"
      "rank 0 has waited 7ms for rank 1 in step 1, bucket 1: all_reduce(sum, "
      "f32 x 4), collective 1 of group replicas";
};

TEST_F(LossTest, TheVerdictNamesWhatWasWaitedFor) {
  answers_[0] = WaitingFor(0, 1);
  Begin(Plain(100));
  Heard();
  Send(Loss());
  ASSERT_TRUE(ended()) << "all who can answer have";
  EXPECT_EQ(verdict(), absl::UnavailableError(kVerdict));
  EXPECT_EQ(Heard(), absl::StrCat("rank 0: asked, rank 0: end: ", kVerdict,
                                  ", rank 1: end: ", kVerdict));
}

TEST_F(LossTest, WhoeverComputesIsAskedAgain) {
  answers_[0] = Computing(0);
  Begin(Plain(100));
  Heard();
  Send(Loss());
  EXPECT_EQ(Heard(), "rank 0: asked");
  system_.Advance(absl::Milliseconds(25));
  EXPECT_EQ(Heard(), "rank 0: asked");
  EXPECT_FALSE(ended());
  answers_[0] = WaitingFor(0, 1);
  system_.Advance(absl::Milliseconds(25));
  ASSERT_TRUE(ended());
  EXPECT_EQ(verdict(), absl::UnavailableError(kVerdict));
}

TEST_F(LossTest, IsHeldForAMomentOnly) {
  answers_[0] = Computing(0);
  Begin(Plain(100));
  Send(Loss());
  for (int i = 1; i < 6; ++i) system_.Advance(absl::Milliseconds(25));
  EXPECT_FALSE(ended());
  system_.Advance(absl::Milliseconds(25));
  ASSERT_TRUE(ended());
  EXPECT_EQ(verdict(), absl::UnavailableError("process 1 is lost: why\n"
                                              "no rank waits for another\n"
                                              "rank 0 is computing step 1"));
}

TEST_F(LossTest, NothingElseGoesOnMeanwhile) {
  Begin(Plain(2));
  Heard();
  Send(Loss());
  EXPECT_EQ(Heard(), "rank 0: asked");
  for (int rank : {0, 1}) Send(StepsOf(kNow, rank, 0, 2));
  Send(halt_atom::value);
  Send(Failure{kNow, 0, "compute", 13, "and now this"});
  EXPECT_EQ(Heard(), "");
  EXPECT_FALSE(ended());
  Send(WaitingFor(0, 1));
  ASSERT_TRUE(ended());
  EXPECT_EQ(verdict(), absl::UnavailableError(kVerdict));
}

TEST_F(LossTest, AnswersOfThePastAreDropped) {
  Begin(Plain(100));
  Send(WaitingFor(0, 1));
  RankWaits old = WaitingFor(0, 1);
  old.generation = kBefore;
  Send(Loss());
  EXPECT_FALSE(ended()) << "nobody had asked";
  Send(old);
  EXPECT_FALSE(ended()) << "another attempt of the job";
  Send(WaitingFor(0, 1));
  EXPECT_TRUE(ended());
}

// A rank gets the loss from its group, often before the coordinator gets the
// report of the process that noticed it.
TEST_F(LossTest, TheWordsAreThoseOfWhoSawIt) {
  Begin(Plain(100));
  Send(Failure{kNow, 0, "compute", kUnavailable,
               "process 1 (n2, pid 4711, rank 1) is lost: why; in a group"});
  Send(WaitingFor(0, 1));
  EXPECT_FALSE(ended()) << "rank 1 may yet answer";
  Send(Loss());
  ASSERT_TRUE(ended());
  EXPECT_EQ(verdict(), absl::UnavailableError(kVerdict));
}

// Process 1 found process 0 silent and has left; then process 0 resumed.
TEST_F(LossTest, WhoeverLeavesBecauseOfTheFirstFailureIsNotBlamed) {
  Begin(Plain(100));
  Send(Failure{kNow, 0, "compute", kUnavailable, "process 0 stood still"});
  Send(WaitingFor(0, 1));
  Send(Loss());
  ASSERT_TRUE(ended());
  EXPECT_THAT(std::string(verdict().message()),
              testing::StartsWith("rank 0, compute: process 0 stood still\n"));
}

// Rank 1's group, which shares memory, was aborted before its failure arrived
// over the network.
TEST_F(LossTest, TheFailureOfTheRankThatEndedIsTheVerdict) {
  Begin(Plain(100));
  Send(GivenUp());
  Send(WaitingFor(0, 1));
  Send(WaitingFor(1, 0));
  EXPECT_FALSE(ended()) << "rank 1 has a failure of its own";
  Send(Failure{kNow, 1, "loader", kDataLoss, "images.idx: truncated"});
  ASSERT_TRUE(ended());
  EXPECT_EQ(verdict(),
            absl::DataLossError("rank 1, loader: images.idx: truncated"));
}

TEST_F(LossTest, TheFailureOfTheRankThatEndedMayBeALoss) {
  Begin(Plain(100));
  Send(GivenUp());
  Send(Loss());
  EXPECT_FALSE(ended()) << "rank 0 may yet answer";
  Send(WaitingFor(0, 1));
  ASSERT_TRUE(ended());
  EXPECT_EQ(verdict(), absl::UnavailableError(kVerdict));
}

TEST_F(LossTest, ARankThatEndedWithoutAFailureIsNamed) {
  Begin(Plain(100));
  Send(GivenUp());
  Send(Failure{kNow, 1, "comm", kCancelled, "rank 0 has ended"});
  Send(WaitingFor(0, 1));
  system_.Advance(HeldVerdictMax());
  EXPECT_FALSE(ended());
  system_.Advance(absl::FromChrono(HeldVerdict::kCauseMax));
  ASSERT_TRUE(ended());
  EXPECT_EQ(verdict().code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(std::string(verdict().message()),
              testing::StartsWith("rank 0, compute: rank 1 has ended\n"));
}

TEST_F(LossTest, FailuresOfOtherKindsAreNotHeld) {
  Begin(Plain(100));
  Heard();
  Send(Failure{kNow, 0, "loader", kUnavailable, "the disk is gone"});
  EXPECT_TRUE(ended());
  EXPECT_EQ(Heard(),
            "rank 0: end: rank 0, loader: the disk is gone, "
            "rank 1: end: rank 0, loader: the disk is gone");
}

}  // namespace
}  // namespace troupe::actors
