#include "actors/tracing/trace_json.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/actors/tracing/trace_importer.h"

namespace troupe::actors {
namespace {

using pipeline::ActionKind;
using testing::ElementsAre;
using testing::Pair;

// Events of one step, a microsecond apart.
class Story {
 public:
  Story& Add(TraceKind kind, TracePhase phase, const std::string& name,
             ActionKind action = ActionKind::kForward, int bucket = -1) {
    TraceEvent event;
    event.rank = rank;
    event.kind = kind;
    event.track = kind == TraceKind::kCollective ? TraceTrack::kComm
                                                 : TraceTrack::kCompute;
    event.phase = phase;
    event.action = action;
    event.bucket = bucket;
    event.name = name;
    events_.push_back({event, double(events_.size())});
    return *this;
  }
  Story& Begin(TraceKind kind, const std::string& name,
               ActionKind action = ActionKind::kForward, int bucket = -1) {
    return Add(kind, TracePhase::kBegin, name, action, bucket);
  }
  Story& End(TraceKind kind, const std::string& name) {
    return Add(kind, TracePhase::kEnd, name);
  }
  Story& Ready(int bucket) {
    return Add(TraceKind::kBucketReady, TracePhase::kInstant, "bucket ready",
               ActionKind::kForward, bucket);
  }
  // Adds a send or receive of micro-batch 2 between stages 0 and 1.
  Story& Transfer(const std::string& name, ActionKind action) {
    Begin(TraceKind::kTransfer, name, action);
    events_.back().event.boundary = 0;
    events_.back().event.micro_batch = 2;
    return End(TraceKind::kTransfer, name);
  }
  ImportedTrace Imported() const { return ImportTrace(TraceJson(events_, 0)); }

  int rank = 0;

 private:
  std::vector<StampedEvent> events_;
};

TEST(TraceJsonTest, ReductionsThatOverlapHaveATrackEach) {
  const TraceKind kind = TraceKind::kCollective;
  const ImportedTrace trace = Story()
                                  .Begin(kind, "AR0")
                                  .Begin(kind, "AR1")
                                  .End(kind, "AR0")
                                  .Begin(kind, "AR2")
                                  .End(kind, "AR1")
                                  .End(kind, "AR2")
                                  .Imported();
  EXPECT_EQ(trace.problems, "");
  std::vector<std::string> where;
  for (const ImportedSlice& slice : trace.slices) where.push_back(slice.where);
  EXPECT_THAT(where, ElementsAre("0/comm/AR0", "0/comm 2/AR1", "0/comm/AR2"));
  EXPECT_EQ(trace.slices[1].begin, 1);
  EXPECT_EQ(trace.slices[1].end, 4);
}

TEST(TraceJsonTest, ArrowsLeadFromABucketToItsReductionAndItsUpdate) {
  Story story;
  story.Begin(TraceKind::kAction, "B0")
      .Ready(0)
      .Begin(TraceKind::kCollective, "AR0", ActionKind::kReduceBucket, 0)
      .Ready(1)
      .End(TraceKind::kAction, "B0")
      .Begin(TraceKind::kCollective, "RU1", ActionKind::kReduceUpdateBucket, 1)
      .End(TraceKind::kCollective, "AR0")
      .End(TraceKind::kCollective, "RU1")
      .Begin(TraceKind::kUpdate, "UP0", ActionKind::kUpdateBucket, 0)
      .End(TraceKind::kUpdate, "UP0");
  const ImportedTrace trace = story.Imported();
  EXPECT_EQ(trace.problems, "");
  EXPECT_THAT(trace.arrows,
              ElementsAre(Pair(Pair("0/comm/AR0", "0/compute/UP0"), 1),
                          Pair(Pair("0/compute/B0", "0/comm 2/RU1"), 1),
                          Pair(Pair("0/compute/B0", "0/comm/AR0"), 1)));
}

TEST(TraceJsonTest, ArrowsLeadFromStageToStage) {
  Story story;
  story.Transfer("SA2", ActionKind::kSendActivation);
  story.rank = 1;
  story.Transfer("RA2", ActionKind::kRecvActivation)
      .Transfer("SG2", ActionKind::kSendGradient);
  story.rank = 0;
  story.Transfer("RG2", ActionKind::kRecvGradient);
  const ImportedTrace trace = story.Imported();
  EXPECT_EQ(trace.problems, "");
  EXPECT_THAT(trace.arrows,
              ElementsAre(Pair(Pair("0/compute/SA2", "1/compute/RA2"), 1),
                          Pair(Pair("1/compute/SG2", "0/compute/RG2"), 1)));
}

TEST(TraceJsonTest, SlicesLieInTheirPartWithFactsAndMemory) {
  TraceSlice inner;
  inner.category = "operator";
  inner.name = "ReluForward";
  inner.micros = 1.25;
  inner.duration = 0.5;
  inner.bytes = 128;
  inner.facts = {{"module", "layer1"}};
  TraceSlice outer;
  outer.category = "part";
  outer.name = "train";
  outer.micros = 1.25;
  outer.duration = 2;
  TraceEvent event;  // between the ends of both
  event.phase = TracePhase::kInstant;
  event.kind = TraceKind::kBucketReady;
  event.bytes = 64;
  event.bucket = 0;
  TraceEvent backward;
  backward.name = "B0";
  backward.phase = TracePhase::kBegin;
  TraceEvent end = backward;
  end.phase = TracePhase::kEnd;
  const ImportedTrace trace = ImportTrace(TraceJson(
      {{backward, 1}, {event, 2}, {end, 4}}, /*dropped=*/0, {inner, outer}));
  EXPECT_EQ(trace.problems.find("wrong order"), std::string::npos)
      << trace.problems;
  ASSERT_EQ(trace.slices.size(), 3u);
  EXPECT_EQ(trace.slices[1].where, "0/compute/train");
  EXPECT_EQ(trace.slices[2].where, "0/compute/ReluForward");
  EXPECT_EQ(trace.slices[2].begin, 1.25);
  EXPECT_EQ(trace.slices[2].end, 1.75);
  EXPECT_EQ(trace.slices[2].facts.at("module"), "layer1");
  EXPECT_THAT(trace.counters.at({0, "memory"}), ElementsAre(128, 64));
}

TEST(TraceJsonTest, MemoryIsACounterOfItsRank) {
  std::vector<StampedEvent> events;
  const auto add = [&](int rank, std::int64_t bytes) {
    TraceEvent event;
    event.rank = rank;
    event.phase = TracePhase::kInstant;
    event.kind = TraceKind::kBucketReady;
    event.bytes = bytes;
    event.bucket = static_cast<int>(events.size());
    events.push_back({event, double(events.size())});
  };
  for (const std::int64_t bytes : {-1, 64, 64, 128, 64}) add(0, bytes);
  add(3, 64);
  const auto counters = ImportTrace(TraceJson(events, 0)).counters;
  using Values =
      std::map<std::pair<int, std::string>, std::vector<std::int64_t>>;
  EXPECT_EQ(counters,
            (Values{{{0, "memory"}, {64, 128, 64}}, {{3, "memory"}, {64}}}));
}

// The importer of these tests finds the rows that the real one drops.
TEST(TraceImporterTest, SeesWhatWouldBeDropped) {
  const auto problems = [](const std::string& rows) {
    return ImportTrace("{\"traceEvents\":[" + rows + "]}").problems;
  };
  const std::string begin =
      R"({"ph":"B","pid":0,"tid":1,"ts":1,"name":"B0","args":{"step":1}},)";
  const std::string end = R"({"ph":"E","pid":0,"tid":1,"ts":9,"name":"B0"})";
  EXPECT_EQ(problems(begin + end), "");
  const auto arrow = [](const std::string& id, const std::string& tid) {
    return R"({"ph":"s","cat":"a","name":"a","pid":0,"ts":5,"id":)" + id +
           R"(,"tid":)" + tid + "},";
  };
  EXPECT_THAT(problems(begin + arrow("\"r0s1b0\"", "1") + end),
              testing::HasSubstr("has no number"));
  EXPECT_THAT(problems(begin + arrow("7", "2") + end),
              testing::HasSubstr("lies in no slice"));
  EXPECT_THAT(problems(begin + arrow("7", "1") + end),
              testing::HasSubstr("does not end"));
  EXPECT_THAT(problems(begin + begin + end),
              testing::HasSubstr("B0 does not end"));
  EXPECT_THAT(problems(R"({"ph":"b","pid":0,"tid":1,"ts":1,"name":"AR0"})"),
              testing::HasSubstr("of an unknown phase"));
}

}  // namespace
}  // namespace troupe::actors
