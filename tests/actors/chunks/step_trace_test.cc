#include "actors/chunks/step/step_trace.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace troupe::actors {
namespace {

using pipeline::Action;
using pipeline::ActionKind;

// A sink that records step 7 only.
class Sink : public TraceSink {
 public:
  bool Wants(std::int64_t step) const override { return step == 7; }
  void Record(const TraceEvent& event) override {
    const char* const phases[] = {"+", "-", "!"};
    absl::StrAppend(&text, text.empty() ? "" : " ",
                    phases[static_cast<int>(event.phase)], event.name);
    events.push_back(event);
  }
  std::string text;
  std::vector<TraceEvent> events;
};

absl::Status Fails(StepTrace& trace) {
  const Action action = {ActionKind::kForward, 2, {}};
  const TraceScope scope(trace, action);
  return absl::InternalError("planted");
}

TEST(StepTraceTest, AScopeEndsAlsoOnAnError) {
  Sink sink;
  StepTrace trace(&sink, /*rank=*/3);
  trace.BeginStep(StepKind::kTrain, 7);
  EXPECT_FALSE(Fails(trace).ok());
  EXPECT_EQ(sink.text, "+F2 -F2");
  EXPECT_EQ(sink.events[0].rank, 3);
  EXPECT_EQ(sink.events[0].step, 7);
}

TEST(StepTraceTest, KnowsCollectivesAndUpdatesByTheirKind) {
  Sink sink;
  StepTrace trace(&sink, /*rank=*/0);
  trace.BeginStep(StepKind::kTrain, 7);
  trace.Begin({ActionKind::kReduceUpdateBucket, 4, {}});
  trace.Begin({ActionKind::kReduceLoss, 0, {}});
  trace.Begin({ActionKind::kUpdateBucket, 1, {}});
  EXPECT_EQ(sink.text, "+RU4 +LR +UP1");
  EXPECT_EQ(sink.events[0].kind, TraceKind::kCollective);
  EXPECT_EQ(sink.events[0].track, TraceTrack::kComm);
  EXPECT_EQ(sink.events[0].action, ActionKind::kReduceUpdateBucket);
  EXPECT_EQ(sink.events[0].bucket, 4);
  EXPECT_EQ(sink.events[1].kind, TraceKind::kCollective);
  EXPECT_EQ(sink.events[1].bucket, -1);
  EXPECT_EQ(sink.events[2].kind, TraceKind::kUpdate);
  EXPECT_EQ(sink.events[2].track, TraceTrack::kCompute);
}

TEST(StepTraceTest, KnowsWhichStagesATransferIsBetween) {
  Sink sink;
  StepTrace trace(&sink, /*rank=*/3, /*stages=*/{1, 3}, /*replica=*/2);
  trace.BeginStep(StepKind::kTrain, 7);
  const auto boundary = [&](ActionKind kind, int chunk) {
    Action action = {kind, /*index=*/5, {}};
    action.chunk = chunk;
    trace.Begin(action);
    EXPECT_EQ(sink.events.back().kind, TraceKind::kTransfer);
    EXPECT_EQ(sink.events.back().micro_batch, 5);
    EXPECT_EQ(sink.events.back().replica, 2);
    return sink.events.back().boundary;
  };
  EXPECT_EQ(boundary(ActionKind::kRecvActivation, 0), 0);
  EXPECT_EQ(boundary(ActionKind::kSendActivation, 0), 1);
  EXPECT_EQ(boundary(ActionKind::kRecvGradient, 0), 1);
  EXPECT_EQ(boundary(ActionKind::kSendGradient, 0), 0);
  EXPECT_EQ(boundary(ActionKind::kSendActivation, 1), 3);
  EXPECT_EQ(boundary(ActionKind::kSendGradient, 1), 2);
}

TEST(StepTraceTest, IsSilentWhereNobodyWantsIt) {
  Sink sink;
  StepTrace trace(&sink, /*rank=*/0);
  trace.BeginStep(StepKind::kTrain, 6);
  trace.BucketReady(/*chunk=*/0, /*bucket=*/0);
  trace.BeginStep(StepKind::kEvaluate, 7);
  trace.GradientComplete("0.weight", /*chunk=*/0, /*bucket=*/0);
  EXPECT_EQ(sink.text, "");
  StepTrace nowhere(nullptr, /*rank=*/0);
  nowhere.BeginStep(StepKind::kTrain, 7);
  EXPECT_FALSE(Fails(nowhere).ok());
}

}  // namespace
}  // namespace troupe::actors
