#include "actors/chunks/bucket_reductions.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "actors/chunks/plain_reduction.h"
#include "gtest/gtest.h"
#include "tests/actors/chunks/two_dtypes.h"

namespace troupe::actors {
namespace {

pipeline::ParameterPlanOptions Replicas(int replicas) {
  pipeline::ParameterPlanOptions options;
  options.mesh = pipeline::Mesh(replicas);
  return options;
}

absl::StatusOr<std::unique_ptr<BucketReductions>> ReductionsOf(
    TwoDTypes& model, const CommunicationHook* hook = nullptr) {
  BucketReductions::Options options;
  options.plan = &model.plan;
  options.replica = 1;
  options.kernels = model.kernels.get();
  options.memory = &model.kernels->allocator();
  options.hook = hook;
  options.averages = true;
  return BucketReductions::Create(options, *model.arenas);
}

TEST(BucketReductionsTest, AnAllReduceWorksOnTheGradients) {
  TwoDTypes model(Replicas(2));
  const auto reductions = ReductionsOf(model).value();
  const int wide = model.BucketOf("wide.weight");
  EXPECT_TRUE(reductions->in_place(wide));
  model.Fill(wide, 3);
  ASSERT_TRUE(reductions->Begin(wide).ok());
  const auto collective = reductions->Exchange(wide);
  ASSERT_TRUE(collective.has_value());
  EXPECT_EQ(collective->kind, comm::CollectiveKind::kAllReduce);
  EXPECT_EQ(collective->op, comm::ReduceOp::kAvg);
  EXPECT_EQ(collective->range.raw(), model.arenas->Grads(wide).raw());
  std::vector<nn::Tensor> ranges;
  reductions->AddRanges(ranges);
  ASSERT_EQ(ranges.size(), 2u);
  for (int i : {0, 1}) {
    EXPECT_EQ(ranges[i].raw(), model.arenas->arena(i).grads().raw());
  }
}

TEST(BucketReductionsTest, AnotherDTypeHasMemoryOfItsOwn) {
  pipeline::ParameterPlanOptions plan = Replicas(2);
  plan.reduction_dtype = nn::DType::kBF16;
  TwoDTypes model(plan);
  const auto reductions = ReductionsOf(model).value();
  const int wide = model.BucketOf("wide.weight");
  EXPECT_FALSE(reductions->in_place(wide));
  model.Fill(wide, 1 + 1.0 / 1024);
  ASSERT_TRUE(reductions->Begin(wide).ok());
  EXPECT_EQ(reductions->Exchange(wide)->range.dtype(), nn::DType::kBF16);
  ASSERT_TRUE(reductions->End(wide).ok());
  EXPECT_EQ(TwoDTypes::First(model.arenas->Grads(wide)), 1);
  std::vector<nn::Tensor> ranges;
  reductions->AddRanges(ranges);
  EXPECT_EQ(static_cast<int>(ranges.size()), model.arenas->num_buckets());
}

TEST(BucketReductionsTest, AHookMakesThoseOfAllBuckets) {
  TwoDTypes model(Replicas(2));
  std::string made;
  CommunicationHook hook;
  hook.name = "recorded";
  hook.make = [&made](const GradientBucket& bucket)
      -> absl::StatusOr<std::unique_ptr<BucketReduction>> {
    for (const GradientBucket::Parameter& parameter : bucket.parameters) {
      absl::StrAppend(&made, parameter.name, " ");
    }
    EXPECT_EQ(bucket.replica, 1);
    EXPECT_EQ(bucket.elems % 2, 0);
    return std::make_unique<PlainReduction>(comm::ReduceOp::kSum);
  };
  const absl::Status unplanned = ReductionsOf(model, &hook).status();
  EXPECT_EQ(unplanned.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(unplanned.message(),
                                "\"recorded\", and the plan has \"\""))
      << unplanned;
  EXPECT_EQ(made, "");
  model.plan.hook = hook.name;
  EXPECT_TRUE(ReductionsOf(model, &hook).ok());
  EXPECT_EQ(made, "wide.bias wide.weight plain.bias plain.weight ");
  // One replica alone exchanges nothing.
  TwoDTypes alone(Replicas(1));
  EXPECT_TRUE(ReductionsOf(alone, &hook).value()->in_place(0));
}

}  // namespace
}  // namespace troupe::actors
