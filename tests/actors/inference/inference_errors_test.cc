// Errors of a session: which call has them, and what comes after.

#include <errno.h>

#include <cstdint>
#include <string>
#include <utility>

#include "actors/inference/inference_session.h"
#include "actors/sim/simulated_inference.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/actors/inference/trained_gpt.h"
#include "tests/base/seeds.h"

namespace troupe::actors {
namespace {

using testing::HasSubstr;

TEST_F(InferenceSessionTest, AnotherModelIsRefusedAtOnce) {
  JobSpec spec = GptJob({"h.2"});
  spec.model = [] { return Gpt(/*width=*/16); };
  const absl::Status status = InferenceSession::Open(spec, Saved()).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("is of another model; mismatched: h.0.attn."));
  spec = GptJob({"h.9"});
  EXPECT_THAT(
      std::string(InferenceSession::Open(spec, Saved()).status().message()),
      HasSubstr("h has no child \"9\""));
}

TEST_F(InferenceSessionTest, AnErrorIsOfItsCallAlone) {
  const Tokens text = Text();
  const nn::Tensor floats =
      nn::Tensor::Empty({1, kContext}, nn::DType::kF32, memory_);
  for (const std::uint64_t seed : Seeds(20)) {
    const auto session = Simulated(GptJob({"h.2"}), seed);
    ASSERT_TRUE(session->Run(Input(1)).ok());
    for (int time = 0; time < 2; ++time) {
      const absl::Status status =
          session->Run({Input(1), floats, Input(1)}).status();
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr("rank 0, compute: step 3, micro-batch 0: in "
                            "module wte"));
      const auto output = session->Run(Input(1));
      ASSERT_TRUE(output.ok()) << output.status() << ReplayCommand(seed);
      ASSERT_TRUE(nn::BitEqual(*output, Expected(Input(1))))
          << ReplayCommand(seed);
    }
    nn::Tensor next = nn::Tensor::Empty({1, 1}, nn::DType::kI64, memory_);
    next.data<std::int64_t>()[0] = 1;
    // A text cannot go on with what ended with the stages.
    nn::TextPlaces places;
    places.texts = 1, places.context = kContext;
    places.rows = {{/*text=*/0, /*past=*/3}};
    EXPECT_THAT(std::string(session->Run(next, places).status().message()),
                HasSubstr("text 0 goes on after 3 tokens, of which the "
                          "key-value cache has none; begin it anew"));
    ASSERT_EQ(Text(*session), text) << ReplayCommand(seed);
  }
}

// Calls that were started by then end with the stages.
TEST_F(InferenceSessionTest, AnErrorOfAStartedCallIsOfThoseBefore) {
  const auto session = Open(GptJob({"h.2"}));
  const nn::Tensor floats =
      nn::Tensor::Empty({1, kContext}, nn::DType::kF32, memory_);
  for (int time = 0; time < 3; ++time) {
    const auto failed = session->Start({floats});
    const auto behind = session->Start({Input(1)});
    EXPECT_TRUE(absl::IsInvalidArgument(failed->Wait().status()));
    EXPECT_FALSE(behind->Wait().ok() && failed->Wait().ok());
    const auto output = session->Run(Input(2));
    ASSERT_TRUE(output.ok()) << output.status();
    EXPECT_TRUE(nn::BitEqual(*output, Expected(Input(2))));
  }
}

TEST_F(InferenceSessionTest, AFileThatCannotBeReadIsNamed) {
  for (const std::uint64_t seed : Seeds(20)) {
    Checkpoint saved = Saved();
    files_.FailReadAt(files_.reads() + static_cast<int>(seed % 9), EIO);
    const auto session =
        SimulatedInference::Open(GptJob({"h.2"}), std::move(saved), {seed});
    ASSERT_TRUE(session.ok()) << session.status();
    const absl::Status status = (*session)->Run(Input(1)).status();
    EXPECT_THAT(std::string(status.message()), HasSubstr(".safetensors"))
        << ReplayCommand(seed);
    EXPECT_TRUE((*session)->Run(Input(1)).ok()) << ReplayCommand(seed);
  }
}

TEST_F(InferenceSessionTest, SilenceEnds) {
  JobSpec spec = GptJob({"h.2"});
  spec.timeout = absl::Microseconds(1);
  SimulatedInferenceOptions options;
  options.message_time_max = absl::Milliseconds(1);
  const auto session = SimulatedInference::Open(spec, Saved(), options);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ((*session)->Run(Input(1)).status(),
            absl::DeadlineExceededError(
                "no stage has said anything for 1us (rank 0 has done 0, rank 1 "
                "has done 0 of 1 inputs)"));
}

}  // namespace
}  // namespace troupe::actors
