// Tests a trained model that computes in stages: it has the bits of one rank,
// in threads and under every seed, and no rank holds the whole model.

#include "actors/inference/inference_session.h"

#include <errno.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/checkpoint/load_model.h"
#include "actors/inference/predict.h"
#include "actors/job.h"
#include "actors/sim/simulated_inference.h"
#include "base/files/file_system.h"
#include "data/in_memory_dataset.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/generate/generate.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/queued/queued_kernels.h"
#include "nn/models/gpt2.h"
#include "nn/ops/loss.h"
#include "nn/optim/adam.h"
#include "tests/actors/test_job.h"
#include "tests/base/faulty_file_system.h"
#include "tests/base/seeds.h"

namespace troupe::actors {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::Lt;
using Tokens = std::vector<std::int32_t>;
using Cuts = std::vector<pipeline::Cut>;

constexpr std::int64_t kContext = 16, kVocabulary = 13, kSamples = 24;

std::unique_ptr<nn::Kernels> PlainKernels() {
  nn::CpuKernelOptions options;
  options.onednn = false;
  return nn::CreateCpuKernels(options);
}

std::unique_ptr<nn::Sequential> Gpt(std::int64_t width = 32) {
  nn::Gpt2Options gpt;
  gpt.layers = 4;
  gpt.heads = 2;
  gpt.width = width;
  gpt.context = kContext;
  gpt.vocab_size = kVocabulary;
  gpt.dropout = 0.5;  // would change the outputs if it were on
  gpt.tie_head = false;
  return *nn::MakeGpt2(gpt);
}

data::DatasetPtr Sequences() {
  nn::CachingAllocator memory;
  const nn::Shape shape = {kSamples, kContext};
  nn::Tensor tokens = nn::Tensor::Empty(shape, nn::DType::kI64, memory);
  nn::Tensor next = nn::Tensor::Empty(shape, nn::DType::kI64, memory);
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    tokens.data<std::int64_t>()[i] = i * i % kVocabulary;
    next.data<std::int64_t>()[i] = (i * i + 1) % kVocabulary;
  }
  return *data::MakeInMemoryDataset(tokens, next, kVocabulary);
}

JobSpec GptJob(const Cuts& cuts) {
  JobSpec spec;
  spec.model = [] { return Gpt(); };
  spec.loss = nn::ops::CrossEntropyLoss();
  spec.optimizer = [] {
    nn::AdamOptions adam;
    adam.lr = 0.01;
    return std::make_unique<nn::Adam>(adam);
  };
  spec.kernels = PlainKernels;
  spec.train = Sequences();
  spec.steps = 2;
  spec.timeout = absl::Seconds(60);
  spec.plan.mesh = pipeline::Mesh(1, static_cast<int>(cuts.size()) + 1);
  spec.plan.cuts = cuts;
  spec.plan.global_batch_size = 8;
  spec.plan.micro_batch_size = 3;
  return spec;
}

// A model that two stages have trained, and functions that run it.
class InferenceSessionTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new std::string(testing::TempDir() + "/inference_session");
    base::PosixFileSystem files;
    files.RemoveAll(*folder_).IgnoreError();  // an earlier run's folder
    JobSpec spec = GptJob({"h.2"});
    spec.checkpoint.dir = *folder_;
    ASSERT_TRUE(RunJob(spec).ok());
  }

  Checkpoint Saved() { return *OpenCheckpoint(files_, *folder_); }

  std::unique_ptr<InferenceSession> Open(const JobSpec& spec) {
    auto session = InferenceSession::Open(spec, Saved());
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  }
  std::unique_ptr<InferenceSession> Simulated(const JobSpec& spec,
                                              std::uint64_t seed) {
    auto session = SimulatedInference::Open(spec, Saved(), {seed});
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  }

  // Returns `count` rows of tokens.
  nn::Tensor Input(std::int64_t count, std::int64_t first = 0) {
    nn::Tensor input =
        nn::Tensor::Empty({count, kContext}, nn::DType::kI64, memory_);
    for (std::int64_t i = 0; i < input.numel(); ++i) {
      input.data<std::int64_t>()[i] = (first + 3 * i) % kVocabulary;
    }
    return input;
  }
  // Returns the output of the whole model in one forward.
  nn::Tensor Expected(const nn::Tensor& input) {
    nn::Context ctx(*kernels_);
    ctx.set_training(false);
    nn::Tensor output = Whole()(ctx, input);
    EXPECT_TRUE(ctx.ok()) << ctx.status();
    return output;
  }
  nn::Module& Whole() {
    if (whole_ == nullptr) {
      whole_ = Gpt();
      EXPECT_TRUE(LoadModel(Saved(), *whole_, *kernels_).ok());
    }
    return *whole_;
  }

  static nn::GenerateOptions Sampled() {
    nn::GenerateOptions options;
    options.tokens = 24;  // beyond the context
    options.context = kContext;
    options.sampling.temperature = 1.5;
    options.sampling.top_k = 9;
    options.sampling.top_p = 0.95;
    options.sampling.seed = 5;
    return options;
  }
  // Return the generated text, by one rank and by a session.
  Tokens Text() {
    Tokens text;
    EXPECT_TRUE(nn::Generate(Whole(), *kernels_, {1, 2}, Sampled(),
                             [&](std::int32_t token) {
                               text.push_back(token);
                               return true;
                             })
                    .ok());
    return text;
  }
  Tokens Text(InferenceSession& session) {
    Tokens text;
    const absl::Status status = nn::Generate(
        [&](const nn::Tensor& tokens, const nn::TextPlaces& texts) {
          return session.Run(tokens, texts);
        },
        memory_, {1, 2}, Sampled(),
        [&](std::int32_t token) {
          text.push_back(token);
          return true;
        });
    EXPECT_TRUE(status.ok()) << status;
    return text;
  }

  static std::string* folder_;
  base::FaultyFileSystem files_;
  nn::CachingAllocator memory_;
  const std::unique_ptr<nn::Kernels> kernels_ = PlainKernels();
  std::unique_ptr<nn::Module> whole_;
};

std::string* InferenceSessionTest::folder_ = nullptr;

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
  struct Listener : nn::TextListener {
    bool OnToken(std::size_t text, std::int32_t token) override {
      said[text].push_back(token);
      return true;
    }
    std::vector<Tokens> said = std::vector<Tokens>(4);
  };
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

TEST_F(InferenceSessionTest, AnInputThatTheModelDoesNotTakeEndsTheSession) {
  for (const std::uint64_t seed : Seeds(20)) {
    const auto session = Simulated(GptJob({"h.2"}), seed);
    ASSERT_TRUE(session->Run(Input(1)).ok());
    const nn::Tensor floats =
        nn::Tensor::Empty({1, kContext}, nn::DType::kF32, memory_);
    const absl::Status status =
        session->Run({Input(1), floats, Input(1)}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("rank 0, compute: step 3, micro-batch 0: in module "
                          "wte"));
    EXPECT_EQ(session->Run(Input(1)).status(), status);
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
