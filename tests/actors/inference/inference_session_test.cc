// Tests a trained model that computes in stages: it has the bits of one rank,
// in threads and under every seed, and no rank holds the whole model.

#include "actors/inference/inference_session.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/inference/predict.h"
#include "actors/job.h"
#include "actors/sim/simulated_inference.h"
#include "base/files/file_system.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/generate/generate.h"
#include "nn/kernels/queued/queued_kernels.h"
#include "tests/actors/inference/trained_gpt.h"
#include "tests/actors/test_job.h"
#include "tests/base/seeds.h"

namespace troupe::actors {
namespace {

using testing::Each;
using testing::Lt;
const std::vector<Cuts>& AllCuts() {
  static const auto* const cuts = new std::vector<Cuts>{
      {}, {"h.2"}, {"h.1", "ln_f"}, {"wpe", "h.1", "h.3"}};
  return *cuts;
}

TEST_F(InferenceSessionTest, StagesSayWhatOneRankSays) {
  const nn::Tensor input = Input(2);
  for (const Cuts& cuts : AllCuts()) {
    const auto session = Open(GptJob(cuts));
    const absl::StatusOr<nn::Tensor> output = session->Run(input);
    ASSERT_TRUE(output.ok()) << output.status();
    EXPECT_TRUE(nn::BitEqual(*output, Expected(input))) << cuts.size();
    EXPECT_EQ(Text(*session), Text()) << cuts.size();
  }
}

TEST_F(InferenceSessionTest, UnderEverySeed) {
  const Tokens text = Text();
  for (const Cuts& cuts : AllCuts()) {
    for (const std::uint64_t seed : Seeds(20)) {
      const auto session = Simulated(GptJob(cuts), seed);
      ASSERT_EQ(Text(*session), text)
          << cuts.size() << " cuts, " << ReplayCommand(seed);
    }
  }
}

// Two ranks with two chunks each, looped and in the shape of a V.
TEST_F(InferenceSessionTest, ChunksUnderEverySeed) {
  const Tokens text = Text();
  JobSpec spec = GptJob({"h.1", "h.2", "h.3"});
  spec.plan.mesh = pipeline::Mesh(1, 2);
  for (const auto& placement :
       {pipeline::LoopedPlacement(2, 2), pipeline::VPlacement(2)}) {
    spec.plan.placement = placement;
    for (const std::uint64_t seed : Seeds(20)) {
      ASSERT_EQ(Text(*Simulated(spec, seed)), text) << ReplayCommand(seed);
    }
  }
}

// Keeps four texts.
struct Listener : nn::TextListener {
  bool OnToken(std::size_t text, std::int32_t token) override {
    said[text].push_back(token);
    return true;
  }
  std::vector<Tokens> said = std::vector<Tokens>(4);
};

// Several texts at a time, each stage with the keys and values of its layers.
TEST_F(InferenceSessionTest, ABatchUnderEverySeed) {
  const std::vector<Tokens> prompts = {{1, 2}, {3}, {4, 5, 6, 7, 8}, {9, 1}};
  nn::GenerateOptions options = Sampled();
  options.tokens = 12;
  std::vector<Tokens> alone;
  for (const Tokens& prompt : prompts) {
    Tokens& text = alone.emplace_back();
    ASSERT_TRUE(nn::Generate(Whole(), *kernels_, prompt, options,
                             [&](std::int32_t token) {
                               text.push_back(token);
                               return true;
                             })
                    .ok());
    ++options.sampling.seed;
  }
  options = Sampled();
  options.tokens = 12;
  options.batch = 3;
  for (const Cuts& cuts : AllCuts()) {
    for (const std::uint64_t seed : Seeds(10)) {
      const auto session = Simulated(GptJob(cuts), seed);
      Listener listener;
      ASSERT_TRUE(
          nn::GenerateTexts(
              [&](const nn::Tensor& tokens, const nn::TextPlaces& texts) {
                return session->Run(tokens, texts);
              },
              memory_, prompts, options, listener)
              .ok());
      ASSERT_EQ(listener.said, alone)
          << cuts.size() << " cuts, " << ReplayCommand(seed);
    }
  }
}

TEST_F(InferenceSessionTest, InputsFollowEachOther) {
  std::vector<nn::Tensor> inputs;
  for (std::int64_t i = 0; i < 7; ++i) inputs.push_back(Input(1 + i % 3, i));
  for (const std::uint64_t seed : Seeds(20)) {
    const auto session = Simulated(GptJob({"h.1", "h.3"}), seed);
    for (int time = 0; time < 2; ++time) {
      const auto outputs = session->Run(inputs);
      ASSERT_TRUE(outputs.ok()) << outputs.status();
      ASSERT_EQ(outputs->size(), inputs.size());
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        ASSERT_TRUE(nn::BitEqual((*outputs)[i], Expected(inputs[i])))
            << i << ", " << ReplayCommand(seed);
      }
    }
    EXPECT_TRUE(session->Run(std::vector<nn::Tensor>())->empty());
  }
}

// Returns the peak bytes of each rank for a wider model, whose parameters take
// more memory than the kernels' own.
std::vector<std::uint64_t> PeakBytes(const Cuts& cuts) {
  JobSpec spec = GptJob(cuts);
  spec.model = [] { return Gpt(/*width=*/256); };
  spec.steps = 0;  // the checkpoint has the initial values
  spec.checkpoint.dir = FreshFolder("wide");
  EXPECT_TRUE(RunJob(spec).ok());
  base::PosixFileSystem files;
  const auto session =
      InferenceSession::Open(spec, *OpenCheckpoint(files, spec.checkpoint.dir));
  nn::CachingAllocator memory;
  const nn::Tensor input =
      nn::Tensor::Empty({1, kContext}, nn::DType::kI64, memory);
  std::fill_n(input.data<std::int64_t>(), kContext, 1);
  for (int time = 0; time < 2; ++time) {
    EXPECT_TRUE((*session)->Run(input).ok());
  }
  return (*session)->peak_bytes();
}

TEST_F(InferenceSessionTest, NoRankHoldsTheWholeModel) {
  std::uint64_t whole = 0;
  const std::unique_ptr<nn::Sequential> model = Gpt(/*width=*/256);
  for (const nn::Parameter* parameter : model->Parameters()) {
    whole += 4 * static_cast<std::uint64_t>(parameter->shape.numel());
  }
  const std::vector<std::uint64_t> alone = PeakBytes({});
  ASSERT_EQ(alone.size(), 1u);
  EXPECT_GT(alone[0], whole);
  // Neither gradients nor states: Adam's would be three times as much.
  EXPECT_LT(alone[0], 2 * whole);
  const std::vector<std::uint64_t> stages = PeakBytes({"h.1", "h.2", "h.3"});
  ASSERT_EQ(stages.size(), 4u);
  EXPECT_THAT(stages, Each(Lt(whole / 2)));
}

// A device with queues computes outputs later, and they arrive on the host.
TEST_F(InferenceSessionTest, OnQueuedDevices) {
  const std::vector<nn::Tensor> inputs = {Input(1), Input(2, 5), Input(1, 7)};
  for (const std::uint64_t seed : Seeds(20)) {
    auto memory = std::make_shared<nn::GuardedMemory>(std::size_t{64} << 20);
    JobSpec spec = GptJob({"h.2"});
    spec.device = {nn::DeviceType::kQueued, 0};
    spec.kernels = [memory, device = seed * 64]() mutable {
      return nn::CreateQueuedKernels(PlainKernels(), memory, device++);
    };
    const auto outputs = Simulated(spec, seed)->Run(inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.status() << ReplayCommand(seed);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      ASSERT_TRUE(nn::BitEqual((*outputs)[i], Expected(inputs[i])))
          << i << ", " << ReplayCommand(seed);
    }
  }
}

// The cache is in the memory of the device, and what it has of past tokens is
// there when the queues have come to it.
TEST_F(InferenceSessionTest, CachesOnQueuedDevices) {
  const std::vector<Tokens> prompts = {{1, 2}, {3}, {4, 5, 6, 7, 8}, {9, 1}};
  nn::GenerateOptions options = Sampled();
  Listener expected;
  ASSERT_TRUE(nn::GenerateTexts(nn::LogitsOf(Whole(), *kernels_), memory_,
                                prompts, options, expected)
                  .ok());
  for (const std::uint64_t seed : Seeds(20)) {
    auto memory = std::make_shared<nn::GuardedMemory>(std::size_t{64} << 20);
    JobSpec spec = GptJob({"h.2"});
    spec.device = {nn::DeviceType::kQueued, 0};
    spec.kernels = [memory, device = seed * 64]() mutable {
      return nn::CreateQueuedKernels(PlainKernels(), memory, device++);
    };
    options.batch = 1 + static_cast<std::int64_t>(seed % 4);
    options.cache = seed % 5 != 0;
    const auto session = Simulated(spec, seed);
    Listener listener;
    const absl::Status status = nn::GenerateTexts(
        [&](const nn::Tensor& tokens, const nn::TextPlaces& texts) {
          return session->Run(tokens, texts);
        },
        memory_, prompts, options, listener);
    ASSERT_TRUE(status.ok()) << status << ReplayCommand(seed);
    ASSERT_EQ(listener.said, expected.said) << ReplayCommand(seed);
  }
}

TEST_F(InferenceSessionTest, PredictsSamples) {
  const auto session = Open(GptJob({"h.2"}));
  const data::DatasetPtr samples = Sequences();
  const absl::StatusOr<nn::Tensor> output =
      Predict(*session, *samples, {4, 2, 23});
  ASSERT_TRUE(output.ok()) << output.status();
  const absl::StatusOr<Prediction> expected =
      Predict(Whole(), *kernels_, *samples, {4, 2, 23}, nn::DType::kF32);
  EXPECT_TRUE(nn::BitEqual(*output, expected->output));
  EXPECT_TRUE(
      absl::IsOutOfRange(Predict(*session, *samples, {kSamples}).status()));
}

TEST_F(InferenceSessionTest, ASeedIsARun) {
  std::vector<std::uint64_t> hashes;
  for (int time = 0; time < 2; ++time) {
    for (const std::uint64_t seed : {1, 2}) {
      auto session = SimulatedInference::Open(GptJob({"h.2"}), Saved(), {seed});
      Text(**session);
      hashes.push_back((*session)->trace_hash());
    }
  }
  EXPECT_EQ(hashes[0], hashes[2]);
  EXPECT_EQ(hashes[1], hashes[3]);
  EXPECT_NE(hashes[0], hashes[1]);
}

}  // namespace
}  // namespace troupe::actors
