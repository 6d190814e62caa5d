#include "nn/modules/recompute.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/modules/dropout.h"
#include "nn/modules/linear.h"
#include "nn/modules/relu.h"
#include "nn/modules/sequential.h"
#include "nn/ops/add.h"
#include "nn/ops/loss.h"
#include "tests/nn/autograd/tape_fixture.h"

namespace troupe::nn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// x + up(dropout(relu(down(x)))).
class Recomputed : public Module {
 public:
  Recomputed()
      : down_(Add<Linear>("down", 4, 8)), up_(Add<Linear>("up", 8, 4)) {}
  Tensor Forward(Context& ctx, const Tensor& x) override {
    ++runs;
    Tensor y = relu_(ctx, down_(ctx, x));
    return ops::Add(ctx, x, up_(ctx, dropout_(ctx, y)));
  }
  int runs = 0;

 private:
  Linear& down_;
  ReLU& relu_ = Add<ReLU>("relu");
  Dropout& dropout_ = Add<Dropout>("dropout", 0.25);
  Linear& up_;
};

class RecomputeTest : public TapeTest {
 protected:
  RecomputeTest() {
    auto model = std::make_unique<Sequential>();
    model->Append<Linear>(3, 4);
    Sequential& layer = model->Append<Sequential>();
    for (int i = 0; i < 3; ++i) blocks_.push_back(&layer.Append<Recomputed>());
    model->Append<Linear>(4, 2);
    Own(std::move(model));
  }

  absl::Status Apply(const RecomputeOptions& options) {
    return ApplyRecompute(*model_, options, kInput, Device{});
  }
  std::vector<bool> Chosen() const {
    std::vector<bool> chosen;
    for (const Recomputed* block : blocks_)
      chosen.push_back(block->recomputes());
    return chosen;
  }
  double Kept() {
    const auto bytes = KeptActivationBytes(*model_, {kInput}, {}, Device{});
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    return bytes.value_or(-1);
  }

  // Returns all gradients after a step.
  std::vector<double> Gradients() {
    arena_->BeginStep();
    Tape tape;
    Context ctx(*kernels_, &tape);
    ctx.set_random({/*seed=*/1, /*step=*/2, /*sample=*/3});
    const Tensor y = (*model_)(ctx, Draws("x", {5, 3}));
    const Tensor zero =
        Tensor::Zeros(y.shape(), y.dtype(), kernels_->allocator());
    const Tensor loss = ops::MeanSquaredError(ctx, y, zero);
    EXPECT_TRUE(ctx.ok()) << ctx.status();
    Diary diary;
    Backward(tape, loss, diary, Mode::kWhole);
    return AllGrads();
  }

  static inline const TensorSpec kInput = {{5, 3}, DType::kF32};
  std::vector<Recomputed*> blocks_;
};

TEST_F(RecomputeTest, FindsTheBlocks) {
  std::vector<std::string> names;
  for (const ModelBlock& block : BlocksOf(*model_)) names.push_back(block.name);
  EXPECT_THAT(names, ElementsAre("1.0", "1.1", "1.2"));
  EXPECT_THAT(BlocksOf(*blocks_[0]), IsEmpty());
}

TEST_F(RecomputeTest, GradientsHaveTheSameBits) {
  const std::vector<double> kept = Gradients();
  EXPECT_EQ(blocks_[1]->runs, 1);
  RecomputeOptions options;
  options.every = 1;
  ASSERT_TRUE(Apply(options).ok());
  EXPECT_EQ(Gradients(), kept);
  EXPECT_EQ(blocks_[1]->runs, 3);
}

TEST_F(RecomputeTest, EveryNthBlock) {
  RecomputeOptions options;
  options.every = 2;
  ASSERT_TRUE(Apply(options).ok());
  EXPECT_THAT(Chosen(), ElementsAre(true, false, true));
}

TEST_F(RecomputeTest, ByName) {
  RecomputeOptions options;
  options.modules = {"1.1"};
  ASSERT_TRUE(Apply(options).ok());
  EXPECT_THAT(Chosen(), ElementsAre(false, true, false));
  options.modules = {"1.*"};
  ASSERT_TRUE(Apply(options).ok());
  EXPECT_THAT(Chosen(), ElementsAre(true, true, true));
  EXPECT_FALSE(blocks_[0]->children()[0]->recomputes());
  options.modules = {"layer1.*"};
  EXPECT_EQ(Apply(options).message(),
            "no module of the model is called \"layer1.*\"; choose among 0 1 2 "
            "or those in them");
}

TEST_F(RecomputeTest, FitsIntoABudget) {
  const double all = Kept();
  RecomputeOptions options;
  options.budget_bytes = all;
  ASSERT_TRUE(Apply(options).ok());
  EXPECT_THAT(Chosen(), ElementsAre(false, false, false));
  options.budget_bytes = all - 1;
  ASSERT_TRUE(Apply(options).ok());
  EXPECT_THAT(Chosen(), ElementsAre(true, false, false));
  // A block's last sum is kept, since the next block needs it.
  EXPECT_EQ(all - Kept(), 5 * (8 + 8 + 8 + 4) * 4);
  options.budget_bytes = 10;
  const absl::Status status = Apply(options);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("the budget is 10; raise it"));
}

TEST_F(RecomputeTest, RefusesNonsense) {
  RecomputeOptions options;
  options.every = -1;
  EXPECT_EQ(Apply(options).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace troupe::nn
