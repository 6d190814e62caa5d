#include "actors/chunks/bucket_arenas.h"

#include <vector>

#include "gtest/gtest.h"
#include "tests/actors/chunks/two_dtypes.h"

namespace troupe::actors {
namespace {

TEST(BucketArenasTest, ABucketIsInTheArenaOfItsDType) {
  TwoDTypes model;
  const BucketArenas& arenas = *model.arenas;
  EXPECT_EQ(arenas.num_arenas(), 2);
  EXPECT_EQ(arenas.num_buckets(),
            static_cast<int>(model.plan.stages[0].buckets.size()));
  std::vector<int> parameters(arenas.num_buckets());
  for (const nn::Parameter* parameter : model.module.Parameters()) {
    if (parameter->name[0] == 'f') {
      EXPECT_EQ(arenas.BucketOf(*parameter), nn::kNoBucket);
      EXPECT_FALSE(arenas.Has(*parameter) || parameter->requires_grad);
      continue;
    }
    const int bucket = arenas.BucketOf(*parameter);
    EXPECT_TRUE(arenas.Has(*parameter)) << parameter->name;
    EXPECT_EQ(arenas.ArenaOf(bucket).values().dtype(), parameter->dtype);
    ++parameters[bucket];
  }
  for (int k = 0; k < arenas.num_buckets(); ++k) {
    EXPECT_EQ(parameters[k],
              static_cast<int>(model.plan.stages[0].buckets[k].size()));
  }
  const TwoDTypes other;
  EXPECT_FALSE(arenas.Has(*other.arenas->arena(0).slots()[0].parameter));
}

TEST(BucketArenasTest, GradientsHaveMemoryWhileTheyAreHeld) {
  TwoDTypes model(pipeline::ParameterPlanOptions(), /*keep_grads=*/false);
  const nn::Parameter& wide = model.Get("wide.weight");
  const int bucket = model.arenas->BucketOf(wide);
  EXPECT_FALSE(wide.grad.defined());
  model.Fill(bucket, 3);
  EXPECT_EQ(TwoDTypes::First(wide.grad), 3);
  model.arenas->ReleaseGrads(bucket);
  EXPECT_FALSE(wide.grad.defined());
}

TEST(BucketArenasTest, UnpaddedGradientsAreThoseOfTheParametersAlone) {
  TwoDTypes model;
  const nn::Parameter& wide = model.Get("wide.weight");
  const int bucket = model.arenas->BucketOf(wide);
  model.Fill(bucket, 3);
  EXPECT_GT(model.arenas->Grads(bucket).numel(), 2);
  const nn::Tensor grads = model.arenas->UnpaddedGrads(bucket);
  EXPECT_EQ(grads.numel(), 2);
  EXPECT_EQ(grads.raw(), wide.grad.raw());
}

}  // namespace
}  // namespace troupe::actors
