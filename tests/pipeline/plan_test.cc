#include "pipeline/plan.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/field_error.h"
#include "gtest/gtest.h"
#include "nn/models/models.h"
#include "nn/modules/linear.h"
#include "nn/modules/relu.h"
#include "nn/modules/sequential.h"

namespace troupe::pipeline {
namespace {

const nn::Shape kGlyph = {28, 28, 1};

std::unique_ptr<nn::Module> LeNet() {
  return *nn::MakeLeNet(kGlyph, /*num_classes=*/10, {});
}

absl::StatusOr<Plan> PlanOf(const PlanOptions& options,
                            const nn::ModelFactory& factory,
                            const nn::Shape& input = kGlyph) {
  return MakePlan(options, factory, input, nn::DType::kF32, nn::Device{});
}

std::string ErrorOf(const PlanOptions& options,
                    const nn::ModelFactory& factory = LeNet,
                    const nn::Shape& input = kGlyph) {
  const absl::StatusOr<Plan> plan = PlanOf(options, factory, input);
  EXPECT_TRUE(absl::IsInvalidArgument(plan.status())) << plan.status();
  return std::string(plan.status().message());
}

PlanOptions Options(const Mesh& mesh, std::int64_t global_batch_size,
                    std::int64_t micro_batch_size = 0) {
  PlanOptions options;
  options.mesh = mesh;
  options.global_batch_size = global_batch_size;
  options.micro_batch_size = micro_batch_size;
  return options;
}

TEST(PlanTest, SeveralBuckets) {
  PlanOptions options = Options(Mesh(2), 64);
  options.buckets = {/*first_bucket_bytes=*/4096, /*bucket_bytes=*/65536};
  EXPECT_EQ(PlanOf(options, LeNet)->ToString(),
            "mesh dp=2 pp=1, global batch 64 = 2 x 1 micro-batches of 32, "
            "1 thread(s) per rank\n"
            "stage 0: [32, 28, 28, 1] -> [32, 10], 10 parameters in "
            "4 bucket(s)\n"
            "  bucket 0: 934 elements: 11.bias 11.weight 9.bias\n"
            "  bucket 1: 10200 elements: 9.weight 7.bias\n"
            "  bucket 2: 30720 elements: 7.weight\n"
            "  bucket 3: 2572 elements: 3.bias 3.weight 0.bias 0.weight\n"
            "  train: F0 LR B0 AR0 UP0 AR1 UP1 AR2 UP2 AR3 UP3\n");
}

TEST(PlanTest, FrozenParametersFillNoBucket) {
  PlanOptions options = Options(Mesh(1), 64);
  options.buckets = {/*first_bucket_bytes=*/400, /*bucket_bytes=*/400};
  // The bytes of gradients decide whether a rank reduces inline.
  options.inline_bytes = 4 * (98 + 90);
  const auto plan =
      PlanOf(options,
             [] {
               auto model = nn::MakeMlp({8, 10, 1000, 10, 8}, {});
               for (nn::Parameter* parameter : model->Parameters()) {
                 parameter->requires_grad = parameter->shape.numel() < 1000;
               }
               return model;
             },
             {8});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->ToString(),
            "mesh dp=1 pp=1, global batch 64 = 1 x 1 micro-batches of 64, "
            "1 thread(s) per rank\n"
            "stage 0: [64, 8] -> [64, 8], 8 parameters in 2 bucket(s), reduced "
            "inline\n"
            "  bucket 0: 98 elements: 7.bias 7.weight 5.bias\n"
            "  bucket 1: 90 elements: 1.bias 1.weight\n"
            "  frozen: 21000 elements: 3.weight 3.bias 5.weight\n"
            "  train: F0 LR B0 AR0 UP0 AR1 UP1\n");
  EXPECT_EQ(plan->parameter_elems(), 98 + 90 + 21000);
}

TEST(PlanTest, LeNetOnTwoRanks) {
  const absl::StatusOr<Plan> plan = PlanOf(Options(Mesh(2), 64), LeNet);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->ToString(),
            "mesh dp=2 pp=1, global batch 64 = 2 x 1 micro-batches of 32, "
            "1 thread(s) per rank\n"
            "stage 0: [32, 28, 28, 1] -> [32, 10], 10 parameters in "
            "1 bucket(s)\n"
            "  bucket 0: 44426 elements: 11.bias 11.weight 9.bias 9.weight "
            "7.bias 7.weight 3.bias 3.weight 0.bias 0.weight\n"
            "  train: F0 LR B0 AR0 UP0\n");
}

TEST(PlanTest, LeNetInTwoStages) {
  PlanOptions options = Options(Mesh(/*dp=*/1, /*pp=*/2), 64, 32);
  options.cuts = {6};  // after the convolutions
  const absl::StatusOr<Plan> plan = PlanOf(options, LeNet);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->ToString(),
            "mesh dp=1 pp=2, global batch 64 = 1 x 2 micro-batches of 32, "
            "1 thread(s) per rank\n"
            "stage 0: [32, 28, 28, 1] -> [32, 4, 4, 16], 4 parameters in "
            "1 bucket(s)\n"
            "  bucket 0: 2572 elements: 3.bias 3.weight 0.bias 0.weight\n"
            "  train: F0 SA0 F1 SA1 LR RG0 B0 RG1 B1 AR0 UP0\n"
            "stage 1: [32, 4, 4, 16] -> [32, 10], 6 parameters in "
            "1 bucket(s)\n"
            "  bucket 0: 41854 elements: 11.bias 11.weight 9.bias 9.weight "
            "7.bias 7.weight\n"
            "  train: RA0 F0 RA1 F1 LR B0 SG0 B1 SG1 AR0 UP0\n");
  EXPECT_EQ(plan->ranks[0].evaluate.ToString(), "F0 SA0 RG0");
  EXPECT_EQ(plan->ranks[1].evaluate.ToString(), "RA0 F0 SG0");
}

TEST(PlanTest, KnowsWhatEachStageHolds) {
  PlanOptions options = Options(Mesh(/*dp=*/2, /*pp=*/2), 64, 8);
  options.cuts = {6};
  const absl::StatusOr<Plan> plan = PlanOf(options, LeNet);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->micro_batches, 4);
  EXPECT_EQ(plan->parameter_elems(), 44426);
  const StagePlan& first = plan->stages[0];
  EXPECT_EQ(first.input, nn::Shape({8, 28, 28, 1}));
  EXPECT_EQ(first.output, nn::Shape({8, 4, 4, 16}));
  EXPECT_EQ(plan->stages[1].input, first.output);
  EXPECT_EQ(plan->stages[1].output, nn::Shape({8, 10}));
  // The FLOPs of two convolutions of 8 images: 24x24x6 outputs of 25 products
  // each, and 8x8x16 of 150; a product and its sum count as two, and so do the
  // ReLU and the pooling of each output.
  EXPECT_EQ(first.flops, 2.0 * 8 * (24 * 24 * 6 * 26 + 8 * 8 * 16 * 151));
  // Ranks 0 and 1 hold the first stage, 2 and 3 the second.
  EXPECT_EQ(&plan->StageOf(1), &first);
  EXPECT_EQ(&plan->StageOf(2), &plan->stages[1]);
}

TEST(PlanTest, TheWholeShareIsTheDefaultMicroBatch) {
  EXPECT_EQ(PlanOf(Options(Mesh(4), 64), LeNet)->micro_batch_size, 16);
  EXPECT_EQ(PlanOf(Options(Mesh(4), 64), LeNet)->micro_batches, 1);
  EXPECT_EQ(PlanOf(Options(Mesh(4), 64, 4), LeNet)->micro_batches, 4);
}

TEST(PlanTest, SmallGradientsOfWholeReplicasAreReducedInline) {
  PlanOptions options = Options(Mesh(2), 64);
  const std::int64_t bytes = 44426 * 4;
  options.inline_bytes = bytes - 1;
  EXPECT_FALSE(PlanOf(options, LeNet)->ranks[0].reduce_inline);
  options.inline_bytes = bytes;
  EXPECT_TRUE(PlanOf(options, LeNet)->ranks[0].reduce_inline);
  options.mesh = Mesh(/*dp=*/2, /*pp=*/2);
  options.cuts = {6};
  EXPECT_FALSE(PlanOf(options, LeNet)->ranks[0].reduce_inline);
  EXPECT_FALSE(PlanOf(options, LeNet)->ranks[1].reduce_inline);
}

TEST(PlanTest, WhatIsReducedInlineIsUpdatedInTheSamePass) {
  PlanOptions options = Options(Mesh(2), 64);
  options.inline_bytes = 1 << 20;
  const auto table = [&options] {
    return PlanOf(options, LeNet)->ranks[0].train.ToString();
  };
  EXPECT_EQ(table(), "F0 LR B0 RU0");
  options.reductions.update_needs_all_buckets = true;
  EXPECT_EQ(table(), "F0 LR B0 AR0 UP0");
  options.reductions.update_needs_all_buckets = false;
  options.fuse_updates = false;
  EXPECT_EQ(table(), "F0 LR B0 AR0 UP0");
  options.fuse_updates = true;
  options.mesh = Mesh(1);  // no other replica
  EXPECT_EQ(table(), "F0 LR B0 AR0 UP0");
  options.mesh = Mesh(2);
  options.inline_bytes = 0;  // overlaps backward instead
  EXPECT_EQ(table(), "F0 LR B0 AR0 UP0");
}

TEST(PlanTest, AnOptimizerMayNeedAllBuckets) {
  PlanOptions options = Options(Mesh(2), 64);
  options.reductions.update_needs_all_buckets = true;
  const StepTable table = PlanOf(options, LeNet)->ranks[0].train;
  const Action& update = table.actions.back();
  EXPECT_EQ(update.ToString(), "UP0");
  EXPECT_EQ(update.needs.back(), (Signal{SignalKind::kAllReduced, 0}));
}

TEST(PlanTest, EqualOptionsGiveEqualPlans) {
  const PlanOptions options = Options(Mesh(2), 64);
  EXPECT_EQ(PlanOf(options, LeNet)->ToString(),
            PlanOf(options, LeNet)->ToString());
}

TEST(PlanTest, RanksMayHoldSeveralChunks) {
  PlanOptions options = Options(Mesh(/*dp=*/1, /*pp=*/2), 64, 32);
  options.cuts = {3, 6, 9};
  options.virtual_stages = 2;
  const absl::StatusOr<Plan> plan = PlanOf(options, LeNet);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(
      plan->ToString(),
      "mesh dp=1 pp=2, global batch 64 = 1 x 2 micro-batches of 32, "
      "1 thread(s) per rank\n"
      "stage 0 (pp 0, chunk 0): [32, 28, 28, 1] -> [32, 12, 12, 6], "
      "2 parameters in 1 bucket(s)\n"
      "  bucket 0: 156 elements: 0.bias 0.weight\n"
      "stage 1 (pp 1, chunk 0): [32, 12, 12, 6] -> [32, 4, 4, 16], "
      "2 parameters in 1 bucket(s)\n"
      "  bucket 0: 2416 elements: 3.bias 3.weight\n"
      "stage 2 (pp 0, chunk 1): [32, 4, 4, 16] -> [32, 120], "
      "2 parameters in 1 bucket(s)\n"
      "  bucket 0: 30840 elements: 7.bias 7.weight\n"
      "stage 3 (pp 1, chunk 1): [32, 120] -> [32, 10], "
      "4 parameters in 1 bucket(s)\n"
      "  bucket 0: 11014 elements: 11.bias 11.weight 9.bias 9.weight\n"
      "pp 0: 0F0 0SA0 0F1 0SA1 1RA0 1F0 1SA0 1RA1 1F1 1SA1 LR 1RG0 1B0 1SG0 "
      "1RG1 1B1 1SG1 0RG0 0B0 0RG1 0B1 1AR0 1UP0 0AR0 0UP0\n"
      "pp 1: 0RA0 0F0 0SA0 0RA1 0F1 0SA1 1RA0 1F0 1RA1 1F1 LR 1B0 1SG0 1B1 "
      "1SG1 0RG0 0B0 0SG0 0RG1 0B1 0SG1 1AR0 1UP0 0AR0 0UP0\n");
  EXPECT_EQ(plan->ranks[0].evaluate.ToString(),
            "0F0 0SA0 1RA0 1F0 1SA0 0RG0 1SG0 1RG0");
  EXPECT_EQ(plan->StagesOf(1), (std::vector<int>{1, 3}));
  // A rank with two chunks sends to itself.
  options = Options(Mesh(2), 64);
  options.cuts = {6};
  options.virtual_stages = 2;
  options.inline_bytes = 1 << 30;
  const Plan alone = PlanOf(options, LeNet).value();
  EXPECT_FALSE(alone.ranks[0].reduce_inline);
  EXPECT_EQ(alone.ranks[0].train.ToString(),
            "0F0 0SA0 1RA0 1F0 LR 1B0 1SG0 0RG0 0B0 1AR0 1UP0 0AR0 0UP0");
}

TEST(PlanTest, APlacementIsData) {
  PlanOptions options = Options(Mesh(/*dp=*/1, /*pp=*/2), 64);
  options.cuts = {3, 6, 9};
  options.placement = {{0, 0}, {1, 0}, {1, 1}, {0, 1}};
  const absl::StatusOr<Plan> plan = PlanOf(options, LeNet);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->placement(), options.placement);
  EXPECT_EQ(plan->StagesOf(0), (std::vector<int>{0, 3}));
  options.placement = {{0, 0}, {1, 0}, {1, 0}, {0, 1}};
  EXPECT_EQ(ErrorOf(options),
            "placement: stage 2 is chunk 0 of pp 1 where chunk 1 is next");
}

TEST(PlanTest, ChunksThatDoNotFit) {
  PlanOptions options = Options(Mesh(1, 2), 64);
  options.virtual_stages = 2;
  options.cuts = {6};
  EXPECT_EQ(ErrorOf(options),
            "PlanOptions.mesh.pp = 2 with 4 stages need 3 cuts, "
            "PlanOptions.cuts has 1; give as many");
  options.virtual_stages = 0;
  EXPECT_EQ(ErrorOf(options),
            "PlanOptions.virtual_stages = 0: must be from 1 to 1024");
  options.virtual_stages = 1;
  options.schedule = [](const Mesh&, int, int micro_batches) {
    return GPipeTable(micro_batches, /*chunks=*/2);
  };
  EXPECT_EQ(ErrorOf(options),
            "schedule: 1F0 is of chunk 1 where pp 0 has 1 chunk(s)");
}

TEST(PlanTest, SaysWhichKernelsItIsFor) {
  PlanOptions options = Options(Mesh(1), 64);
  options.kernels = "cpu:0, avx512";
  options.inline_bytes = 4096;
  const std::string text = PlanOf(options, LeNet)->ToString();
  EXPECT_NE(text.find("f32 on cpu:0, kernels cpu:0, avx512, reduced in the "
                      "order tree, inline up to 4096 bytes\n"),
            std::string::npos)
      << text;
  options.algorithms["NVIDIA H200"] = {{"a", "b"}, {"c", "d"}};
  EXPECT_NE(PlanOf(options, LeNet)
                ->ToString()
                .find("\n2 algorithm(s) chosen for NVIDIA H200\n"),
            std::string::npos);
  options.loss_scale = 1024;
  EXPECT_NE(PlanOf(options, LeNet)
                ->ToString()
                .find("inline up to 4096 bytes, loss scale 1024\n"),
            std::string::npos);
}

TEST(PlanTest, TheLastMicroBatchHasTheRest) {
  const PlanOptions options = Options(Mesh(2), 20, 4);
  EXPECT_EQ(options.MicroBatchSize(), 4);
  EXPECT_EQ(options.MicroBatches(), 3);
  const Plan plan = *PlanOf(options, LeNet);
  EXPECT_EQ(plan.last_micro_batch_size(), 2);
  EXPECT_EQ(plan.last_micro_batch_part(), 0.5);
  EXPECT_EQ(plan.stages[0].input, nn::Shape({4, 28, 28, 1}));
  EXPECT_EQ(plan.ToString().substr(0, 83),
            "mesh dp=2 pp=1, global batch 20 = 2 x 3 micro-batches of 4, the "
            "last of 2, 1 thread");
  EXPECT_EQ(PlanOf(Options(Mesh(2), 20, 10), LeNet)->last_micro_batch_size(),
            10);
}

TEST(PlanTest, SizesThatDoNotFit) {
  EXPECT_EQ(ErrorOf(Options(Mesh(3), 64, 23)),
            "PlanOptions.micro_batch_size = 23 is more than "
            "PlanOptions.global_batch_size / PlanOptions.mesh.dp = 64 / 3; use "
            "at most 22");
  EXPECT_EQ(ErrorOf(Options(Mesh(2), 64, 33)),
            "PlanOptions.micro_batch_size = 33 is more than "
            "PlanOptions.global_batch_size / PlanOptions.mesh.dp = 64 / 2; use "
            "at most 32");
  EXPECT_EQ(ErrorOf(Options(Mesh(2), 0)),
            "PlanOptions.global_batch_size = 0: must be at least 1");
  EXPECT_EQ(ErrorOf(Options(Mesh(2), 1)),
            "PlanOptions.global_batch_size = 1 is less than "
            "PlanOptions.mesh.dp = 2, and each replica takes a share of a "
            "batch; use at least 2");
  EXPECT_EQ(ErrorOf(Options(Mesh(2), 64, -1)),
            "PlanOptions.micro_batch_size = -1: must be at least 0");
  EXPECT_EQ(ErrorOf(Options(Mesh(0), 64)),
            "mesh: dp and pp must be at least 1, got dp=0 pp=1");
  EXPECT_EQ(ErrorOf(Options(Mesh(1, 2), 64)),
            "PlanOptions.mesh.pp = 2 stages need 1 cuts, PlanOptions.cuts has "
            "0; give as many");
  PlanOptions options = Options(Mesh(1, 1), 64);
  options.cuts = {3};
  EXPECT_EQ(ErrorOf(options),
            "PlanOptions.mesh.pp = 1 stages need 0 cuts, PlanOptions.cuts has "
            "1; give as many");
}

TEST(PlanTest, ErrorsBlameTheirFields) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(base::FieldsOf(PlanOf(Options(Mesh(3), 2), LeNet).status()),
            (Names{"PlanOptions.global_batch_size", "PlanOptions.mesh.dp"}));
  EXPECT_EQ(base::FieldsOf(PlanOf(Options(Mesh(2), 64, 33), LeNet).status()),
            (Names{"PlanOptions.micro_batch_size",
                   "PlanOptions.global_batch_size", "PlanOptions.mesh.dp"}));
  PlanOptions options = Options(Mesh(1, 2), 64);
  options.cuts = {12};
  EXPECT_EQ(base::FieldsOf(PlanOf(options, LeNet).status()),
            Names{"PlanOptions.cuts"});
}

TEST(PlanTest, CutsThatDoNotFit) {
  PlanOptions options = Options(Mesh(1, 2), 64);
  options.cuts = {12};
  EXPECT_EQ(
      ErrorOf(options),
      "cut 12 is not inside the model: cuts must be between 1 and 11 for a "
      "Sequential of 12");
  options.cuts = {1};
  EXPECT_EQ(
      ErrorOf(options, [] { return std::make_unique<nn::Linear>(784, 10); }),
      "only a Sequential can be cut into stages, not a troupe::nn::Linear; "
      "make the model one, or leave it whole");
}

TEST(PlanTest, AScheduleHasThePlansMicroBatches) {
  PlanOptions options = Options(Mesh(1), 64, 16);
  options.schedule = [](const Mesh&, int, int micro_batches) {
    return GPipeTable(micro_batches - 1);
  };
  EXPECT_EQ(ErrorOf(options),
            "schedule: stage 0 has 3 micro-batches where the plan has 4");
}

TEST(PlanTest, ShapeErrorsNameTheModule) {
  EXPECT_EQ(ErrorOf(Options(Mesh(2), 64), LeNet, {28, 28, 3}),
            "in module 0: conv2d takes x[N, H, W, C] and w[O, C, R, S] of one "
            "dtype, got f32[32, 28, 28, 3] and f32[6, 1, 5, 5]");
  EXPECT_EQ(ErrorOf(Options(Mesh(2), 64),
                    [] {
                      return nn::MakeMlp({784, 128, 10}, {});
                    },
                    {32, 32, 1}),
            "in module 1: linear takes x[..., K] and w[M, K] of one dtype, got "
            "f32[32, 1024] and f32[128, 784]");
  // The same in the second stage: names do not depend on cuts.
  PlanOptions options = Options(Mesh(1, 2), 64);
  options.cuts = {3};
  const nn::ModelFactory broken = [] {
    auto model = std::make_unique<nn::Sequential>();
    model->Append<nn::Linear>(8, 7);
    model->Append<nn::ReLU>();
    model->Append<nn::Linear>(7, 6);
    model->Append<nn::ReLU>();
    model->Append<nn::Linear>(5, 4);
    return model;
  };
  EXPECT_EQ(ErrorOf(options, broken, {8}),
            "in module 4: linear takes x[..., K] and w[M, K] of one dtype, got "
            "f32[64, 6] and f32[4, 5]");
  EXPECT_EQ(ErrorOf(Options(Mesh(1), 64), [] { return nullptr; }),
            "the ModelFactory returned null; return a module from it");
}

// A module whose forward checks that no tensor has memory.
class MetaProbe : public nn::Module {
 public:
  explicit MetaProbe(int* forwards)
      : forwards_(*forwards),
        weight_(Declare("weight", {4}, nn::Initializer::Constant(0))) {}

  nn::Tensor Forward(nn::Context& ctx, const nn::Tensor& x) override {
    ++forwards_;
    EXPECT_TRUE(ctx.shape_only());
    EXPECT_TRUE(x.is_meta());
    EXPECT_TRUE(ctx.Use(weight_).is_meta());
    EXPECT_TRUE(weight_.value.is_meta());
    EXPECT_FALSE(weight_.grad.defined());
    return x;
  }

 private:
  int& forwards_;
  nn::Parameter& weight_;
};

TEST(PlanTest, ParametersStayWithoutMemory) {
  int forwards = 0;
  const absl::StatusOr<Plan> plan = PlanOf(Options(Mesh(2), 64), [&] {
    return std::make_unique<MetaProbe>(&forwards);
  });
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(forwards, 1) << "once, however many ranks";
}

TEST(PlanTest, AModelThatFitsNowhereIsPlanned) {
  constexpr std::int64_t kWidth = std::int64_t{1} << 21;  // 16 TiB a layer
  PlanOptions options = Options(Mesh(/*dp=*/64, /*pp=*/2), 4096, 64);
  options.cuts = {2};
  const absl::StatusOr<Plan> plan =
      PlanOf(options,
             [] {
               return nn::MakeMlp({kWidth, kWidth, kWidth}, {});
             },
             {kWidth});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->parameter_elems(), 2 * (kWidth * kWidth + kWidth));
}

}  // namespace
}  // namespace troupe::pipeline
