// A small GPT that two stages have trained, and functions that run it: by one
// rank in this thread, and by sessions.
//
//   TEST_F(InferenceSessionTest, SaysTheSame) {
//     EXPECT_EQ(Text(*Open(GptJob({"h.2"}))), Text());
//   }

#ifndef TESTS_ACTORS_INFERENCE_TRAINED_GPT_H_
#define TESTS_ACTORS_INFERENCE_TRAINED_GPT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/checkpoint/load_model.h"
#include "actors/job.h"
#include "actors/sim/simulated_inference.h"
#include "gtest/gtest.h"
#include "nn/generate/generate.h"
#include "nn/models/gpt2.h"
#include "tests/base/faulty_file_system.h"

namespace troupe::actors {

using Tokens = std::vector<std::int32_t>;
using Cuts = std::vector<pipeline::Cut>;

inline constexpr std::int64_t kContext = 16, kVocabulary = 13, kSamples = 24;

std::unique_ptr<nn::Kernels> PlainKernels();
std::unique_ptr<nn::Sequential> Gpt(std::int64_t width = 32);
// Returns samples of kContext tokens, each with the next as its target.
data::DatasetPtr Sequences();
// Returns a job that trains Gpt() for two steps.
JobSpec GptJob(const Cuts& cuts);

// A model that two stages have trained, and functions that run it.
class InferenceSessionTest : public testing::Test {
 protected:
  static void SetUpTestSuite();

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

  static nn::GenerateOptions Sampled();
  // Return the generated text, by one rank and by a session.
  Tokens Text();
  Tokens Text(InferenceSession& session);

  static std::string* folder_;
  base::FaultyFileSystem files_;
  nn::CachingAllocator memory_;
  const std::unique_ptr<nn::Kernels> kernels_ = PlainKernels();
  std::unique_ptr<nn::Module> whole_;
};

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_INFERENCE_TRAINED_GPT_H_
