// Deliberate bugs: stages whose keys and values are not those of the text. A
// simulated session must reveal each within a thousand seeds, by other logits
// than those of a forward of the whole text.

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "actors/checkpoint/load_model.h"
#include "actors/job.h"
#include "actors/sim/simulated_inference.h"
#include "base/files/file_system.h"
#include "data/in_memory_dataset.h"
#include "gtest/gtest.h"
#include "nn/autograd/context.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/models/gpt2.h"
#include "nn/ops/loss.h"
#include "nn/optim/sgd.h"
#include "tests/actors/inference/planted/bug.h"
#include "tests/actors/sim/planted/hunt.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

constexpr char kOtherLogits[] = "other logits than the whole text's";
constexpr std::int64_t kContext = 16, kVocabulary = 13;

struct Case {
  Bug bug;
  const char* name;
};

#define TROUPE_CASE(bug) \
  { Bug::k##bug, #bug }

constexpr Case kCases[] = {
    TROUPE_CASE(PositionOffByOne),
    TROUPE_CASE(NotCutBack),
    TROUPE_CASE(PlacesOfTheStepBefore),
    TROUPE_CASE(OnlyFirstStage),
};

// Prints the bug's name in messages of GoogleTest.
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::unique_ptr<nn::Sequential> Gpt() {
  nn::Gpt2Options gpt;
  gpt.layers = 3;
  gpt.heads = 2;
  gpt.width = 32;
  gpt.context = kContext;
  gpt.vocab_size = kVocabulary;
  gpt.tie_head = false;
  return *nn::MakeGpt2(gpt);
}

JobSpec GptJob() {
  nn::CachingAllocator memory;
  const nn::Tensor tokens =
      nn::Tensor::Zeros({4, kContext}, nn::DType::kI64, memory);
  JobSpec spec;
  spec.model = Gpt;
  spec.loss = nn::ops::CrossEntropyLoss();
  spec.optimizer = [] { return std::make_unique<nn::Sgd>(nn::SgdOptions()); };
  spec.train = *data::MakeInMemoryDataset(tokens, tokens, kVocabulary);
  spec.plan.mesh = pipeline::Mesh(/*dp=*/1, /*pp=*/3);
  spec.plan.cuts = {"h.1", "h.2"};
  spec.plan.global_batch_size = 4;
  return spec;
}

class TextBugsTest : public testing::TestWithParam<Case> {
 protected:
  TextBugsTest() : spec_(GptJob()) {
    spec_.checkpoint.dir = FreshFolder("text_bugs");
    EXPECT_TRUE(RunJob(spec_).ok());  // no steps: the initial values
    EXPECT_TRUE(LoadModel(Saved(), *whole_, *kernels_).ok());
  }

  Checkpoint Saved() { return *OpenCheckpoint(files_, spec_.checkpoint.dir); }

  // Returns tokens [begin, end) of text `text`, four times: a product of fewer
  // rows has another order of sums.
  nn::Tensor Part(std::int64_t text, std::int64_t begin, std::int64_t end) {
    nn::Tensor x =
        nn::Tensor::Empty({4, end - begin}, nn::DType::kI64, memory_);
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      const std::int64_t t = begin + i % (end - begin);
      x.data<std::int64_t>()[i] = (7 * text + t * t + 3 * t) % kVocabulary;
    }
    return x;
  }
  // Whether a session gives, for tokens [begin, end) after the ones that it
  // has, the logits of the whole text.
  bool IsRight(InferenceSession& session, std::int64_t text, std::int64_t begin,
               std::int64_t end) {
    nn::TextPlaces places;
    places.texts = 1;
    places.context = kContext;
    places.rows = {{0, begin}, {-1, 0}, {-1, 0}, {-1, 0}};
    const absl::StatusOr<nn::Tensor> seen =
        session.Run(Part(text, begin, end), places);
    nn::Context ctx(*kernels_);
    ctx.set_training(false);
    const nn::Tensor wanted = (*whole_)(ctx, Part(text, 0, end));
    EXPECT_TRUE(ctx.ok()) << ctx.status();
    const nn::Shape shape = {(end - begin) * kVocabulary};
    return seen.ok() &&
           nn::BitEqual(seen->FlatView(0, shape),
                        wanted.FlatView(begin * kVocabulary, shape));
  }
  // A prompt and its continuation, then another prompt in its place.
  std::string Try(std::uint64_t seed) {
    const auto session = SimulatedInference::Open(spec_, Saved(), {seed});
    if (!session.ok()) return std::string(session.status().message());
    const bool right =
        IsRight(**session, 0, 0, 5) && IsRight(**session, 0, 5, 6) &&
        IsRight(**session, 0, 6, 7) && IsRight(**session, 1, 0, 3) &&
        IsRight(**session, 1, 3, 4);
    return right ? "" : kOtherLogits;
  }

  base::PosixFileSystem files_;
  nn::CachingAllocator memory_;
  JobSpec spec_;
  const std::unique_ptr<nn::Kernels> kernels_ = nn::CreateCpuKernels({});
  const std::unique_ptr<nn::Module> whole_ = Gpt();
};

TEST_P(TextBugsTest, IsFound) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    ASSERT_EQ(Try(seed), "") << seed;
  }
  ExpectFound(GetParam().bug, GetParam().name, kOtherLogits,
              [&](std::uint64_t seed) { return Try(seed); });
}

INSTANTIATE_TEST_SUITE_P(All, TextBugsTest, testing::ValuesIn(kCases),
                         [](const auto& info) {
                           return std::string(info.param.name);
                         });

TEST(TextBugs, EachBugHasACase) { ExpectACaseForEach<Bug>(kCases); }

}  // namespace
}  // namespace troupe::actors
