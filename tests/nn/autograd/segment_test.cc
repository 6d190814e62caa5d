#include "nn/autograd/segment.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn/models/models.h"
#include "nn/modules/dropout.h"
#include "nn/modules/linear.h"
#include "nn/modules/relu.h"
#include "nn/modules/sequential.h"
#include "nn/ops/recompute.h"
#include "tests/nn/autograd/tape_fixture.h"

namespace troupe::nn {
namespace {

// A child that is run again in backward, or not.
class Maybe : public Module {
 public:
  Maybe(std::unique_ptr<Module> part, bool again)
      : part_(AddChild("part", std::move(part))), again_(again) {}
  Tensor Forward(Context& ctx, const Tensor& x) override {
    const auto part = [this](Context& inner, const Tensor& input) {
      ++runs;
      return part_(inner, input);
    };
    return again_ ? ops::Recompute(ctx, part, x) : part(ctx, x);
  }
  int runs = 0;

 private:
  Module& part_;
  const bool again_;
};

class SegmentTest : public TapeTest {
 protected:
  // Linear, (Linear, ReLU, dropout, Linear) that may run again, Linear.
  Maybe& MakeModel(bool again) {
    auto part = std::make_unique<Sequential>();
    part->Append<Linear>(4, 5);
    part->Append<ReLU>();
    part->Append<Dropout>(0.3);
    part->Append<Linear>(5, 4);
    auto model = std::make_unique<Sequential>();
    model->Append<Linear>(3, 4);
    Maybe& maybe = model->Append<Maybe>(std::move(part), again);
    model->Append<Linear>(4, 2);
    Own(std::move(model));
    return maybe;
  }

  Tensor LossOf(Tape& tape, const Tensor& x) {
    Context ctx(*kernels_, &tape);
    ctx.set_random({/*seed=*/1, /*step=*/2, /*sample=*/3});
    Tensor y = (*model_)(ctx, x);
    Tensor zero = Tensor::Zeros(y.shape(), y.dtype(), kernels_->allocator());
    Tensor loss = ops::MeanSquaredError(ctx, y, zero);
    EXPECT_TRUE(ctx.ok()) << ctx.status();
    return loss;
  }
};

TEST_F(SegmentTest, GivesTheSameBitsInEveryMode) {
  const auto run = [&](bool again, bool split) {
    MakeModel(again);
    std::vector<double> all;
    arena_->BeginStep();
    for (int micro_batch = 0; micro_batch < 2; ++micro_batch) {
      Tape tape;
      Diary diary;
      const Tensor x = tape.Watch(Draws(std::to_string(micro_batch), {6, 3}));
      const Tensor loss = LossOf(tape, x);
      if (split) {
        Backward(tape, loss, diary, Mode::kInputs);
        EXPECT_EQ(diary.text.find("complete"), std::string::npos);
        Backward(tape, Tensor(), diary, Mode::kWeights);
      } else {
        Backward(tape, loss, diary, Mode::kWhole);
      }
      EXPECT_TRUE(tape.parameters().empty()) << "the sink knows all";
      for (double value : ValuesOf(tape.InputGrad(x))) all.push_back(value);
    }
    for (double value : AllGrads()) all.push_back(value);
    return all;
  };
  const std::vector<double> plain = run(/*again=*/false, /*split=*/false);
  EXPECT_EQ(run(true, false), plain);
  EXPECT_EQ(run(true, true), plain);
  EXPECT_EQ(run(false, true), plain);
}

TEST_F(SegmentTest, ItsParametersCountAsUsedUntilItHasRunAgain) {
  Maybe& part = MakeModel(/*again=*/true);
  Tape tape;
  Diary diary;
  const Tensor loss = LossOf(tape, Draws("x", {6, 3}));
  EXPECT_EQ(part.runs, 1);
  EXPECT_EQ(tape.num_nodes(), 4) << "linear, segment, linear, loss";
  EXPECT_EQ(tape.parameters(), parameters_);
  BackwardPass pass(tape, *kernels_, diary, Mode::kWhole);
  pass.Seed(loss);
  while (part.runs == 1) {
    EXPECT_EQ(diary.text.find("part"), std::string::npos);
    ASSERT_TRUE(*pass.Next());
  }
  Run(pass);
  EXPECT_EQ(diary.text,
            "complete 2.weight\ncomplete 2.bias\n"
            "read 2.weight\nread 2.bias\n"
            "complete 1.part.3.weight\ncomplete 1.part.3.bias\n"
            "read 1.part.3.weight\nread 1.part.3.bias\n"
            "complete 1.part.0.weight\ncomplete 1.part.0.bias\n"
            "read 1.part.0.weight\nread 1.part.0.bias\n"
            "complete 0.weight\ncomplete 0.bias\n"
            "read 0.weight\nread 0.bias\n");
  EXPECT_EQ(part.runs, 2);
}

TEST_F(SegmentTest, ASegmentThatNoGradientReachesIsReported) {
  Own(MakeMlp({3, 3}, {}));
  Tape tape;
  Context ctx(*kernels_, &tape);
  const Tensor x = tape.Watch(Draws("x", {2, 3}));
  int runs = 0;
  ops::Recompute(
      ctx,
      [&](Context& inner, const Tensor& input) {
        ++runs;
        return (*model_)(inner, input);
      },
      x);
  const Tensor loss = ops::MeanSquaredError(ctx, x, Draws("t", {2, 3}));
  Diary diary;
  Backward(tape, loss, diary, Mode::kWhole);
  EXPECT_EQ(diary.text,
            "read 1.weight\nread 1.bias\n"
            "complete 1.weight\ncomplete 1.bias\n");
  EXPECT_EQ(runs, 1);
}

TEST_F(SegmentTest, WithoutATapeItRunsOnce) {
  Maybe& part = MakeModel(/*again=*/true);
  Context ctx(*kernels_);
  ctx.set_training(false);
  EXPECT_TRUE((*model_)(ctx, Draws("x", {6, 3})).defined());
  EXPECT_EQ(part.runs, 1);
}

}  // namespace
}  // namespace troupe::nn
