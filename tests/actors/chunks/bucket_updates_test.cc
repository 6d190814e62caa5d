#include "actors/chunks/bucket_updates.h"

#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "nn/kernels/step_scalars.h"
#include "nn/optim/adam.h"
#include "tests/actors/chunks/two_dtypes.h"

namespace troupe::actors {
namespace {

// A model whose gradients are all 0.5, with Adam.
class Updated {
 public:
  Updated()
      : updates_({model_.kernels, nn::Queue::kCompute, scalars_},
                 *model_.arenas) {
    EXPECT_TRUE(updates_
                    .Attach([] {
                      return std::make_unique<nn::Adam>(nn::AdamOptions());
                    })
                    .ok());
    BeginStep(0);
  }
  void BeginStep(std::int64_t step) {
    nn::StepScalars values;
    updates_.optimizer()->FillScalars(step, values);
    values.loss_count = 1;
    nn::ScalarsIn(scalars_) = values;
    model_.arenas->BeginStep();
    updates_.BeginStep();
    for (int k = 0; k < model_.arenas->num_buckets(); ++k) model_.Fill(k, 0.5);
  }
  void UpdateAll() {
    for (int k = 0; k < model_.arenas->num_buckets(); ++k) {
      EXPECT_TRUE(updates_.Update(k, scalars_).ok());
    }
  }
  // Updates a parameter whose only row has these gradients.
  void UpdateRow(const char* name, double gradient) {
    const nn::Parameter& parameter = model_.Get(name);
    nn::Tensor rows = nn::Tensor::Empty(parameter.shape, parameter.dtype,
                                        model_.kernels->allocator());
    ASSERT_TRUE(model_.kernels->Fill(gradient, rows).ok());
    EXPECT_TRUE(updates_.UpdateRows(parameter, 0, rows, scalars_).ok());
  }
  void LeaveOut(const char* name) {
    nn::Parameter* const one[] = {&model_.Get(name)};
    updates_.LeaveOut(one);
  }
  std::vector<double> Values() {
    std::vector<double> values;
    for (const char* name :
         {"plain.weight", "plain.bias", "wide.weight", "wide.bias"}) {
      values.push_back(model_.FirstOf(name));
    }
    return values;
  }
  TwoDTypes& model() { return model_; }
  BucketUpdates& get() { return updates_; }

 private:
  TwoDTypes model_;
  nn::Tensor scalars_ = nn::Tensor::Empty(
      {nn::kNumStepScalars}, nn::DType::kF64, model_.kernels->allocator());
  BucketUpdates updates_;
};

TEST(BucketUpdatesTest, WhatIsUpdatedByRowsIsUpdatedOnce) {
  Updated whole, rows;
  whole.UpdateAll();
  const int bucket = rows.model().BucketOf("wide.weight");
  EXPECT_FALSE(rows.get().IsUpdated(bucket));
  rows.UpdateRow("wide.weight", 0.5);
  EXPECT_TRUE(rows.get().IsUpdated(bucket));
  EXPECT_FALSE(rows.get().IsUpdated(rows.model().BucketOf("wide.bias")));
  EXPECT_FALSE(rows.get().IsUpdated(rows.model().BucketOf("plain.bias")));
  // The bucket's own gradients are not read.
  rows.model().Fill(bucket, 100);
  rows.UpdateAll();
  EXPECT_EQ(rows.Values(), whole.Values());
  rows.BeginStep(1);
  EXPECT_FALSE(rows.get().IsUpdated(bucket));
}

TEST(BucketUpdatesTest, WhatIsLeftOutIsAsYoungAsItWas) {
  Updated run, fresh;
  const std::vector<double> first = run.Values();
  run.LeaveOut("plain.weight");
  EXPECT_TRUE(run.get().leaves_out());
  run.UpdateAll();
  run.get().CountLeftOut();
  EXPECT_EQ(run.Values()[0], first[0]);
  for (int i : {1, 2, 3}) EXPECT_NE(run.Values()[i], first[i]);
  // Its first update is that of a first step.
  run.BeginStep(1);
  EXPECT_FALSE(run.get().leaves_out());
  run.UpdateAll();
  fresh.UpdateAll();
  EXPECT_EQ(run.Values()[0], fresh.Values()[0]);
}

TEST(BucketUpdatesTest, AReductionUpdatesTheValuesOfItsBucket) {
  Updated run;
  for (int k = 0; k < run.model().arenas->num_buckets(); ++k) {
    const comm::Collective collective = run.get().ReduceUpdate(k);
    EXPECT_EQ(collective.range.raw(), run.model().arenas->Grads(k).raw());
    ASSERT_NE(collective.update, nullptr);
    const std::vector<nn::Tensor> state = run.model().arenas->StateOf(k);
    ASSERT_EQ(collective.update->replicas().size(), state.size());
    for (std::size_t i = 0; i < state.size(); ++i) {
      EXPECT_EQ(collective.update->replicas()[i].raw(), state[i].raw());
    }
  }
}

}  // namespace
}  // namespace troupe::actors
