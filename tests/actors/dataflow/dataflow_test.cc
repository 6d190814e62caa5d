// Tests without actors: descriptions of dataflows, a single stage, and the wire
// format.

#include "actors/dataflow/dataflow.h"

#include <cstring>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "actors/dataflow/channel_wire.h"
#include "actors/dataflow/stage_run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/actors/dataflow/small_flow.h"

namespace troupe::actors {
namespace {

using testing::HasSubstr;

absl::StatusOr<std::optional<nn::Tensor>> Nothing() { return std::nullopt; }
absl::StatusOr<nn::Tensor> Same(const nn::Tensor& x) { return x; }
absl::Status Drop(const nn::Tensor&) { return absl::OkStatus(); }

TEST(Dataflow, PrintsItsHandlers) {
  Numbers got;
  SmallFlow options;
  options.square_in = 1;
  const Dataflow flow = Diamond(options, &got);
  EXPECT_EQ(flow.Check(/*processes=*/2), absl::OkStatus());
  EXPECT_EQ(flow.ToString(),
            "source: -> a[2], b[2]\n"
            "double (process 1): sums[2] -> back[2]\n"
            "double (process 1): a[2] -> doubles[2]\n"
            "sum: doubles[2], b[2] -> sums[2]\n"
            "sink: back[2] -> \n");
}

TEST(Dataflow, NamesWhatIsWrong) {
  const auto check = [](const auto& make, int processes = 1) {
    Dataflow flow;
    make(flow);
    return std::string(flow.Check(processes).message());
  };
  EXPECT_THAT(check([](Dataflow&) {}), HasSubstr("has no stage"));
  EXPECT_THAT(check([](Dataflow& flow) { flow.AddStage("idle"); }),
              HasSubstr("stage idle has no handler"));
  EXPECT_THAT(check([](Dataflow& flow) {
                flow.AddStage("a").Source(flow.AddChannel("x"), Nothing);
                flow.AddStage("a").Source(flow.AddChannel("y"), Nothing);
              }),
              HasSubstr("two stages are called a"));
  EXPECT_THAT(check([](Dataflow& flow) {
                flow.AddStage("a").Source(flow.AddChannel("x"), Nothing);
              }),
              HasSubstr("channel x is written by 1 handlers and read by 0"));
  EXPECT_THAT(check([](Dataflow& flow) {
                const Channel x = flow.AddChannel("x", /*capacity=*/0);
                flow.AddStage("a").Source(x, Nothing);
                flow.AddStage("b").On(x, Drop);
              }),
              HasSubstr("channel x has room for 0 tensors"));
  EXPECT_THAT(check(
                  [](Dataflow& flow) {
                    const Channel x = flow.AddChannel("x");
                    flow.AddStage("a").Source(x, Nothing).InProcess(2);
                    flow.AddStage("b").On(x, Drop);
                  },
                  /*processes=*/2),
              HasSubstr("stage a must lie in process 0 to 1, not 2"));
  EXPECT_THAT(
      check([](Dataflow& flow) { flow.AddStage("a").On(Channel{7}, Drop); }),
      HasSubstr("stage a names a channel that was not added"));
}

TEST(Dataflow, RefusesHandlersInACircle) {
  Dataflow flow;
  const Channel in = flow.AddChannel("in"), there = flow.AddChannel("there"),
                back = flow.AddChannel("back");
  flow.AddStage("source").Source(in, Nothing);
  flow.AddStage("a").On({in, back}, {there}, [](const Tensors& x) {
    return absl::StatusOr<nn::Tensor>(x[0]);
  });
  flow.AddStage("b").On(there, back, Same);
  EXPECT_THAT(std::string(flow.Check().message()),
              HasSubstr("in a circle, and none could begin; the channels: "
                        "there, back"));
}

// A fake of all other stages.
class FakeNeighbours : public StageRun::Host {
 public:
  absl::Status Send(int channel, std::int64_t number,
                    nn::Tensor tensor) override {
    log.push_back("send " + std::to_string(channel) + " " +
                  std::to_string(number) + " " +
                  std::to_string(NumberIn(tensor)));
    return absl::OkStatus();
  }
  void ReturnCredit(int channel) override {
    log.push_back("credit " + std::to_string(channel));
  }
  void End(int channel, std::int64_t count) override {
    log.push_back("end " + std::to_string(channel) + " " +
                  std::to_string(count));
  }
  std::vector<std::string> Take() { return std::exchange(log, {}); }
  std::vector<std::string> log;
};

using Log = std::vector<std::string>;

// Runs handlers until none may run.
absl::Status RunAll(StageRun& run) {
  while (true) {
    const absl::StatusOr<bool> ran = run.RunNext();
    if (!ran.ok()) return ran.status();
    if (!*ran) return absl::OkStatus();
  }
}

class StageRunTest : public testing::Test {
 protected:
  // Returns stage `stage` of `flow`, after its Begin().
  StageRun& Begin(Dataflow flow, int stage) {
    run_ = std::make_unique<StageRun>(
        std::make_shared<const Dataflow>(std::move(flow)), stage);
    EXPECT_EQ(run_->Begin(&neighbours_), absl::OkStatus());
    return *run_;
  }

  Numbers got_;
  FakeNeighbours neighbours_;
  std::unique_ptr<StageRun> run_;
};

TEST_F(StageRunTest, ASourceStopsWhereItsChannelIsFull) {
  StageRun& run = Begin(Chain({/*count=*/3, /*capacity=*/2}, &got_), 0);
  ASSERT_EQ(RunAll(run), absl::OkStatus());
  EXPECT_EQ(neighbours_.Take(), Log({"send 0 0 0", "send 0 1 1"}));
  EXPECT_EQ(run.Describe(), "source waits for room in numbers");
  run.OnCredit(0);
  run.OnCredit(0);
  ASSERT_EQ(RunAll(run), absl::OkStatus());
  EXPECT_EQ(neighbours_.Take(), Log({"send 0 2 2", "end 0 3"}));
  EXPECT_TRUE(run.done());
  EXPECT_EQ(run.uses()[0].tensors, 3);
  EXPECT_EQ(run.uses()[0].in_flight_max, 2);
}

TEST_F(StageRunTest, AHandlerTakesOneOfEachInput) {
  StageRun& run = Begin(Diamond({/*count=*/2}, &got_), 2);
  ASSERT_EQ(run.OnTensor(/*doubles*/ 2, 0, NumberTensor(4)), absl::OkStatus());
  ASSERT_EQ(RunAll(run), absl::OkStatus());
  EXPECT_EQ(neighbours_.Take(), Log());
  EXPECT_EQ(run.Describe(), "sum waits for a tensor in b");
  ASSERT_EQ(run.OnTensor(/*b*/ 1, 0, NumberTensor(2)), absl::OkStatus());
  ASSERT_EQ(RunAll(run), absl::OkStatus());
  EXPECT_EQ(neighbours_.Take(), Log({"send 3 0 6", "credit 2", "credit 1"}));
  ASSERT_EQ(run.OnEnd(2, 1), absl::OkStatus());
  ASSERT_EQ(RunAll(run), absl::OkStatus());
  EXPECT_FALSE(run.done());
  ASSERT_EQ(run.OnEnd(1, 1), absl::OkStatus());
  ASSERT_EQ(RunAll(run), absl::OkStatus());
  EXPECT_EQ(neighbours_.Take(), Log({"end 3 1"}));
  EXPECT_TRUE(run.done());
}

TEST_F(StageRunTest, InputsThatEndApartAreAnError) {
  StageRun& run = Begin(Diamond({/*count=*/2}, &got_), 2);
  ASSERT_EQ(run.OnEnd(/*doubles*/ 2, 0), absl::OkStatus());
  ASSERT_EQ(run.OnTensor(/*b*/ 1, 0, NumberTensor(2)), absl::OkStatus());
  EXPECT_EQ(RunAll(run).message(),
            "stage sum: channel doubles has ended after 0 tensors, but b has "
            "more; send as many to each input of a handler");
}

TEST_F(StageRunTest, TheHandlerThatWasAddedFirstGoesFirst) {
  StageRun& run = Begin(Diamond({/*count=*/9}, &got_), 1);
  ASSERT_EQ(run.OnTensor(/*a*/ 0, 0, NumberTensor(1)), absl::OkStatus());
  ASSERT_EQ(run.OnTensor(/*a*/ 0, 1, NumberTensor(2)), absl::OkStatus());
  ASSERT_EQ(run.OnTensor(/*sums*/ 3, 0, NumberTensor(3)), absl::OkStatus());
  ASSERT_EQ(RunAll(run), absl::OkStatus());
  EXPECT_EQ(neighbours_.Take(), Log({"send 4 0 6", "credit 3", "send 2 0 2",
                                     "credit 0", "send 2 1 4", "credit 0"}));
}

TEST_F(StageRunTest, WhatBreaksTheRulesIsAnError) {
  StageRun& run = Begin(Chain({/*count=*/9, /*capacity=*/1}, &got_), 1);
  EXPECT_THAT(std::string(run.OnTensor(0, 1, NumberTensor(1)).message()),
              HasSubstr("tensor 1 of channel numbers came when 0 had come"));
  ASSERT_EQ(run.OnTensor(0, 0, NumberTensor(1)), absl::OkStatus());
  EXPECT_THAT(std::string(run.OnTensor(0, 1, NumberTensor(1)).message()),
              HasSubstr("channel numbers holds more than 1"));
  EXPECT_THAT(std::string(run.OnEnd(0, 2).message()),
              HasSubstr("ends after 2 tensors, of which 1 came"));
}

TEST_F(StageRunTest, AConditionHoldsAHandlerBack) {
  Dataflow flow;
  const Channel x = flow.AddChannel("x");
  bool open = false;
  flow.AddStage("source").Source(x, Nothing);
  flow.AddStage("gate").On(x, Drop).When([&open] { return open; });
  StageRun& run = Begin(std::move(flow), 1);
  ASSERT_EQ(run.OnTensor(0, 0, NumberTensor(1)), absl::OkStatus());
  ASSERT_EQ(RunAll(run), absl::OkStatus());
  EXPECT_EQ(run.handled(), 0);
  EXPECT_EQ(run.Describe(), "gate waits for a condition of its own");
  open = true;
  ASSERT_EQ(RunAll(run), absl::OkStatus());
  EXPECT_EQ(run.handled(), 1);
}

// Each mistake of a user's function gives an error with its place.
TEST_F(StageRunTest, AFunctionsErrorNamesStageChannelAndNumber) {
  const auto message = [&](auto function, bool with_output) {
    Dataflow flow;
    const Channel x = flow.AddChannel("x"), y = flow.AddChannel("y");
    flow.AddStage("source").Source(x, Nothing);
    std::vector<Channel> outputs;
    if (with_output) outputs = {y};
    flow.AddStage("mine").On(std::vector<Channel>{x}, outputs, function);
    StageRun& run = Begin(std::move(flow), 1);
    EXPECT_EQ(run.OnTensor(0, 0, NumberTensor(1)), absl::OkStatus());
    return std::string(RunAll(run).message());
  };
  EXPECT_EQ(message(
                [](const nn::Tensor&) -> absl::StatusOr<nn::Tensor> {
                  return absl::DataLossError("torn");
                },
                true),
            "stage mine, x, number 0: torn");
  EXPECT_EQ(message(
                [](const nn::Tensor&) -> absl::StatusOr<nn::Tensor> {
                  throw std::runtime_error("thrown");
                },
                true),
            "stage mine, x, number 0: thrown");
  EXPECT_EQ(message(Drop, true),
            "stage mine, x, number 0: gives 0 tensors where it has 1 channels");
  EXPECT_EQ(message([](const nn::Tensor&)
                        -> absl::StatusOr<nn::Tensor> { return nn::Tensor(); },
                    true),
            "stage mine, x, number 0: gives a tensor without memory for "
            "channel y; return one with values");
}

TEST(StageState, AFactoryThatFailsIsNamed) {
  struct Empty {
    absl::Status Take(const nn::Tensor&) { return absl::OkStatus(); }
  };
  Dataflow flow;
  const Channel x = flow.AddChannel("x");
  flow.AddStage("source").Source(x, Nothing);
  flow.AddStage<Empty>("mine", [] { return std::unique_ptr<Empty>(); })
      .On(x, &Empty::Take);
  StageRun run(std::make_shared<const Dataflow>(flow), 1);
  FakeNeighbours neighbours;
  EXPECT_EQ(run.Begin(&neighbours).message(),
            "stage mine: the factory that AddStage() got returned null; "
            "return a state");
}

TEST(ChannelWire, WordsComeBackAsTheyWere) {
  const nn::Tensor tensor = NumberTensor(5).View({1, 1});
  const auto word =
      DecodeWord(EncodeWord({WireWord::Kind::kTensor, /*number=*/7}, tensor));
  ASSERT_TRUE(word.ok()) << word.status();
  EXPECT_EQ(word->kind, WireWord::Kind::kTensor);
  EXPECT_EQ(word->number, 7);
  EXPECT_TRUE(word->has_tensor);
  EXPECT_EQ(word->shape, nn::Shape({1, 1}));
  EXPECT_EQ(word->dtype, nn::DType::kI64);
}

// A header with changed bytes gives an error that names the field, or another
// valid word; never anything else.
TEST(ChannelWire, WordsOfAStrangerAreRead) {
  const std::string good =
      EncodeWord({WireWord::Kind::kCredit}, NumberTensor(1));
  EXPECT_FALSE(DecodeWord(good.substr(1)).ok());
  int refused = 0;
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const unsigned char value : {0x01, 0x7f, 0x80, 0xff}) {
      std::string bad = good;
      bad[at] = static_cast<char>(value);
      const auto word = DecodeWord(bad);
      if (word.ok()) continue;
      ++refused;
      EXPECT_THAT(std::string(word.status().message()), HasSubstr("wrong "));
    }
  }
  EXPECT_GT(refused, 10);
}

}  // namespace
}  // namespace troupe::actors
