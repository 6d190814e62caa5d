// Integer inputs in a job: a model of tokens trains on one rank, on two, and in
// stages, whichever stage gets the integers.

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/job.h"
#include "data/in_memory_dataset.h"
#include "gtest/gtest.h"
#include "nn/modules/embedding.h"
#include "nn/modules/linear.h"
#include "nn/modules/sequential.h"
#include "nn/ops/loss.h"
#include "nn/optim/sgd.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

constexpr std::int64_t kSequences = 64, kTokens = 6, kVocabulary = 11;

// Returns sequences in which 3 t + 1 modulo 11 follows each token t.
data::DatasetPtr Sequences() {
  nn::CachingAllocator memory;
  const nn::Shape shape = {kSequences, kTokens};
  nn::Tensor inputs = nn::Tensor::Empty(shape, nn::DType::kI64, memory);
  nn::Tensor targets = nn::Tensor::Empty(shape, nn::DType::kI64, memory);
  for (std::int64_t i = 0; i < kSequences; ++i) {
    std::int64_t token = i % kVocabulary;
    for (std::int64_t t = 0; t < kTokens; ++t) {
      inputs.data<std::int64_t>()[i * kTokens + t] = token;
      token = (3 * token + 1) % kVocabulary;
      targets.data<std::int64_t>()[i * kTokens + t] = token;
    }
  }
  return *data::MakeInMemoryDataset(inputs, targets, kVocabulary);
}

class Same : public nn::Module {
 public:
  nn::Tensor Forward(nn::Context&, const nn::Tensor& x) override { return x; }
};

JobSpec TokenJob(const pipeline::Mesh& mesh,
                 const std::vector<pipeline::Cut>& cuts) {
  JobSpec spec;
  spec.model = [] {
    auto model = std::make_unique<nn::Sequential>();
    model->Append<Same>();
    model->Append<nn::Embedding>(kVocabulary, 8);
    model->Append<nn::Linear>(8, kVocabulary);
    return model;
  };
  spec.loss = [](nn::Context& ctx, const nn::Tensor& y, const nn::Tensor& t) {
    return nn::ops::SoftmaxCrossEntropy(ctx, y, t);
  };
  spec.optimizer = nn::SgdOptions{/*lr=*/0.5, /*momentum=*/0.9};
  spec.train = spec.test = Sequences();
  spec.steps = 40;
  spec.timeout = absl::Seconds(60);
  spec.plan.mesh = mesh;
  spec.plan.cuts = cuts;
  spec.plan.global_batch_size = 16;
  spec.plan.micro_batch_size = 8;
  return spec;
}

TEST(TokenJobTest, LearnsWhichTokenFollows) {
  const Reports reports = ReportsOf(TokenJob(pipeline::Mesh(1), {}));
  ASSERT_EQ(reports.evaluations.size(), 1u);
  EXPECT_EQ(reports.evaluations[0].count, kSequences * kTokens);
  EXPECT_EQ(reports.evaluations[0].accuracy, 1.0);
  EXPECT_LT(reports.losses().back(), 0.1 * reports.losses().front());
  EXPECT_EQ(reports.info.plan.stages[0].input_dtype, nn::DType::kI64);
  EXPECT_EQ(reports.info.plan.stages[0].output_dtype, nn::DType::kF32);
}

// A cut after the embedding sends floats between the stages; one before it,
// integers.
TEST(TokenJobTest, StagesEqualOneRankToTheBit) {
  const std::vector<double> one =
      ReportsOf(TokenJob(pipeline::Mesh(1), {})).losses();
  EXPECT_EQ(ReportsOf(TokenJob(pipeline::Mesh(1, 2), {2})).losses(), one);
  const Reports three = ReportsOf(TokenJob(pipeline::Mesh(1, 3), {1, 2}));
  EXPECT_EQ(three.losses(), one);
  EXPECT_EQ(three.info.plan.stages[0].output_dtype, nn::DType::kI64);
}

TEST(TokenJobTest, TwoReplicasTrainToo) {
  EXPECT_EQ(ReportsOf(TokenJob(pipeline::Mesh(2), {})).evaluations[0].accuracy,
            1.0);
}

// If the loss holds the only reference to the logits, cross entropy may write
// the gradient over them. The bits are the same as with logits that are kept,
// as in TokenJob().
TEST(TokenJobTest, ALossHasTheLogitsAlone) {
  for (const int stages : {1, 2}) {
    JobSpec spec = TokenJob(pipeline::Mesh(1, stages), {});
    if (stages == 2) spec.plan.cuts = {2};
    const std::vector<double> kept = ReportsOf(spec).losses();
    std::atomic<int> alone{0}, shared{0};
    spec.loss = [&, loss = nn::ops::CrossEntropyLoss()](
                    nn::Context& ctx, nn::Tensor logits,
                    const nn::Tensor& targets) {
      if (ctx.computes()) ++(logits.owns_alone() ? alone : shared);
      return loss(ctx, std::move(logits), targets);
    };
    EXPECT_EQ(ReportsOf(spec).losses(), kept);
    EXPECT_GE(alone, 2 * spec.steps) << "two micro-batches a step";
    EXPECT_EQ(shared, 0);
  }
}

TEST(TokenJobTest, ALossMustReturnItsStatistics) {
  const auto message = [](nn::ops::LossFn loss) {
    JobSpec spec = TokenJob(pipeline::Mesh(1), {});
    spec.loss = loss;
    return std::string(RunJob(spec, nullptr).status().message());
  };
  EXPECT_NE(
      message([](nn::Context&, const nn::Tensor& y, const nn::Tensor&) {
        return y;
      })
          .find("the loss function returned f32[8, 6, 11] on cpu:0, not "
                "the statistics of a loss; return those of nn/ops/loss.h"),
      std::string::npos);
  EXPECT_NE(message([](nn::Context&, const nn::Tensor&, const nn::Tensor&) {
              return nn::Tensor();
            }).find("the loss function returned an undefined tensor, not"),
            std::string::npos);
}

}  // namespace
}  // namespace troupe::actors
