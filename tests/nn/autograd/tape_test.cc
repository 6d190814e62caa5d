#include "nn/autograd/tape.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "nn/models/models.h"
#include "nn/modules/linear.h"
#include "nn/modules/module.h"
#include "nn/modules/sequential.h"
#include "nn/ops/add.h"
#include "nn/ops/loss.h"
#include "nn/ops/relu.h"
#include "tests/nn/autograd/tape_fixture.h"

namespace troupe::nn {
namespace {

TEST_F(TapeTest, TellsTheSinkInOrderAndOnce) {
  Own(MakeMlp({3, 4, 5, 2}, {}));
  Tape tape;
  Diary diary;
  Tensor loss = Loss(tape, Draws("x", {6, 3}));
  Backward(tape, loss, diary, Mode::kWhole);
  // The weight's gradient comes before the input's, so that its bucket can be
  // reduced early; the first layer has no input gradient to compute.
  EXPECT_EQ(diary.text,
            "complete 5.weight\ncomplete 5.bias\n"
            "read 5.weight\nread 5.bias\n"
            "complete 3.weight\ncomplete 3.bias\n"
            "read 3.weight\nread 3.bias\n"
            "complete 1.weight\ncomplete 1.bias\n"
            "read 1.weight\nread 1.bias\n");
}

TEST_F(TapeTest, InPiecesTheSinkHearsOfAGradientAsSoonAsItIsThere) {
  Own(MakeMlp({3, 4, 2}, {}));
  Tape tape;
  Diary diary;
  BackwardPass pass(tape, *kernels_, diary, Mode::kWhole);
  EXPECT_FALSE(*pass.Next()) << "an empty tape has no pieces";

  Tensor loss = Loss(tape, Draws("x", {6, 3}));
  BackwardPass real(tape, *kernels_, diary, Mode::kWhole);
  real.Seed(loss);
  ASSERT_TRUE(*real.Next());  // the loss
  EXPECT_EQ(diary.text, "");
  ASSERT_TRUE(*real.Next());  // weights of the last layer
  EXPECT_EQ(diary.text, "complete 3.weight\ncomplete 3.bias\n");
}

// Takes the gradients of some parameters by rows, and assembles the whole of
// each.
struct RowSink : Diary {
  explicit RowSink(std::vector<std::string> names) : names(std::move(names)) {}
  bool TakesRows(const Parameter& p) override {
    return std::find(names.begin(), names.end(), p.name) != names.end();
  }
  absl::Status TakeRows(Parameter& p, std::int64_t begin,
                        const Tensor& rows) override {
    std::vector<double>& all = taken[p.name];
    EXPECT_EQ(begin * p.shape[1], static_cast<std::int64_t>(all.size()));
    const std::vector<double> values = ValuesOf(rows);
    all.insert(all.end(), values.begin(), values.end());
    absl::StrAppend(&text, rows.dim(0), " rows of ", p.name, "\n");
    return absl::OkStatus();
  }
  const std::vector<std::string> names;
  std::map<std::string, std::vector<double>> taken;
};

// The reference kernels compute two rows at a time, and the rest in the last
// part.
TEST_F(TapeTest, ASinkTakesAGradientByRowsWhenNothingReadsTheWeightAnyMore) {
  Own(MakeMlp({3, 5, 4, 2}, {}));
  const Tensor x = Draws("x", {6, 3});
  Tape tape;
  Diary diary;
  Tensor loss = Loss(tape, x);
  Backward(tape, loss, diary, Mode::kWhole);
  std::map<std::string, std::vector<double>> whole;
  for (const Parameter* p : parameters_) whole[p->name] = ValuesOf(p->grad);

  arena_->BeginStep();
  tape.Reset();
  RowSink sink({"1.weight", "3.weight"});
  loss = Loss(tape, x);
  const int pieces = Backward(tape, loss, sink, Mode::kWhole);
  EXPECT_EQ(sink.text,
            "complete 5.weight\ncomplete 5.bias\n"
            "read 5.weight\nread 5.bias\n"
            "2 rows of 3.weight\n2 rows of 3.weight\n"
            "complete 3.weight\ncomplete 3.bias\n"
            "read 3.weight\nread 3.bias\n"
            "2 rows of 1.weight\n3 rows of 1.weight\n"
            "complete 1.weight\ncomplete 1.bias\n"
            "read 1.weight\nread 1.bias\n");
  EXPECT_EQ(pieces, 9) << "loss, activations, and two a layer";
  for (const Parameter* p : parameters_) {
    const bool by_rows = sink.taken.count(p->name) > 0;
    EXPECT_EQ(by_rows ? sink.taken[p->name] : ValuesOf(p->grad), whole[p->name])
        << p->name;
    EXPECT_TRUE(p->grad_written);
  }
}

// A module that uses its only weight twice.
class Twice : public Module {
 public:
  Twice() : linear_(Add<Linear>("linear", 4, 4)) {}
  Tensor Forward(Context& ctx, const Tensor& x) override {
    return linear_(ctx, linear_(ctx, x));
  }

 private:
  Linear& linear_;
};

TEST_F(TapeTest, AGradientThatSeveralAddToIsNotTakenByRows) {
  Own(std::make_unique<Twice>());
  Tape tape;
  RowSink sink({"linear.weight"});
  Backward(tape, Loss(tape, Draws("x", {6, 4})), sink, Mode::kWhole);
  EXPECT_TRUE(sink.taken.empty());
}

// Two micro-batches, and the two passes of a split backward.
TEST_F(TapeTest, OnlyAWholeBackwardIsTakenByRowsAndOnlyTheFirst) {
  Own(MakeMlp({3, 4, 2}, {}));
  Tape tape;
  RowSink sink({"1.weight"});
  Tensor loss = Loss(tape, Draws("x", {6, 3}));
  Backward(tape, loss, sink, Mode::kInputs);
  Backward(tape, Tensor(), sink, Mode::kWeights);
  tape.Reset();
  Backward(tape, Loss(tape, Draws("x", {6, 3})), sink, Mode::kWhole);
  EXPECT_TRUE(sink.taken.empty());
}

TEST_F(TapeTest, InputsThenWeightsEqualTheWholeBitForBit) {
  Own(*MakeLeNet({16, 16, 2}, 3, {}));
  const Tensor images = Draws("images", {4, 16, 16, 2});
  auto run = [&](bool split, Tensor* dx) {
    arena_->BeginStep();
    for (int micro_batch = 0; micro_batch < 2; ++micro_batch) {
      Tape tape;
      Diary diary;
      Tensor x = tape.Watch(images.Slice(2 * micro_batch, 2 * micro_batch + 2));
      Tensor loss = Loss(tape, x);
      if (split) {
        Backward(tape, loss, diary, Mode::kInputs);
        EXPECT_EQ(diary.text.find("complete"), std::string::npos);
        Backward(tape, Tensor(), diary, Mode::kWeights);
      } else {
        Backward(tape, loss, diary, Mode::kWhole);
      }
      *dx = tape.InputGrad(x);
    }
    return AllGrads();
  };
  Tensor dx_whole, dx_split;
  const std::vector<double> whole = run(/*split=*/false, &dx_whole);
  const std::vector<double> split = run(/*split=*/true, &dx_split);
  EXPECT_EQ(whole, split);
  ASSERT_TRUE(dx_whole.defined());
  EXPECT_TRUE(BitEqual(dx_whole, dx_split));
}

// Runs one stage: watched input, gradient of the output from the next stage.
TEST_F(TapeTest, TwoStagesGiveTheGradientsOfOne) {
  auto train = [&](const std::vector<Sequential::Path>& cuts) {
    auto whole = MakeMlp({3, 5, 4, 2}, {});
    std::vector<Parameter*> all = whole->Parameters();
    arena_ = *ParameterArena::Create({all}, {}, kernels_->allocator());
    EXPECT_TRUE(arena_->Initialize(/*seed=*/7).ok());
    auto stages = *Sequential::Cut(std::move(whole), cuts);
    std::vector<Tape> tapes(stages.size());
    std::vector<Tensor> inputs, outputs;
    Tensor x = Draws("x", {6, 3});
    for (std::size_t i = 0; i < stages.size(); ++i) {
      Context ctx(*kernels_, &tapes[i]);
      inputs.push_back(tapes[i].Watch(x.Detached()));
      outputs.push_back(x = (*stages[i])(ctx, inputs.back()));
    }
    Tensor dy = Draws("dy", {6, 2});
    for (int i = static_cast<int>(stages.size()) - 1; i >= 0; --i) {
      Diary diary;
      BackwardPass pass(tapes[i], *kernels_, diary, Mode::kWhole);
      pass.Seed(outputs[i], dy);
      Run(pass);
      dy = tapes[i].InputGrad(inputs[i]);
    }
    std::vector<double> grads = AllGrads();
    for (double value : ValuesOf(dy)) grads.push_back(value);
    return grads;
  };
  const auto whole = train({});
  EXPECT_EQ(train({{2}}), whole);
  EXPECT_EQ(train({{1}, {3}, {4}}), whole);
}

TEST_F(TapeTest, WithoutATapeNothingIsRecorded) {
  Own(MakeMlp({3, 4, 2}, {}));
  Context ctx(*kernels_);
  Tensor y = (*model_)(ctx, Draws("x", {6, 3}));
  EXPECT_EQ(y.tape_ref().tape, 0u);
}

TEST_F(TapeTest, ConstantsAreNotRecorded) {
  Tape tape;
  Context ctx(*kernels_, &tape);
  Tensor x = Draws("x", {6, 3});
  EXPECT_FALSE(tape.Tracks(ops::Relu(ctx, x)));
  EXPECT_EQ(tape.num_nodes(), 0);
  Tensor watched = tape.Watch(x);
  EXPECT_TRUE(tape.Tracks(ops::Relu(ctx, watched)));
  EXPECT_FALSE(tape.Tracks(ops::Relu(ctx, watched.Detached())));
  tape.Reset();
  EXPECT_FALSE(tape.Tracks(watched)) << "it belongs to the tape before";
}

TEST_F(TapeTest, ALossThatDependsOnNothingHasNoPieces) {
  Tape tape;
  Context ctx(*kernels_, &tape);
  Diary diary;
  Tensor x = Draws("x", {2, 2});
  Tensor loss = ops::MeanSquaredError(ctx, x, x);
  EXPECT_EQ(Backward(tape, loss, diary, Mode::kWhole), 0);
}

TEST_F(TapeTest, AScaledSeedScalesEveryGradient) {
  Own(MakeMlp({3, 4, 2}, {}));
  const Tensor x = Draws("x", {6, 3});
  const auto gradients = [&](double scale, Tensor* dx) {
    arena_->BeginStep();
    Tape tape;
    Diary diary;
    const Tensor watched = tape.Watch(x);
    const Tensor loss = Loss(tape, watched);
    BackwardPass pass(tape, *kernels_, diary, Mode::kWhole);
    pass.SeedLoss(loss, scale);
    Run(pass);
    *dx = tape.InputGrad(watched);
    return AllGrads();
  };
  Tensor dx, dx_scaled;
  std::vector<double> plain = gradients(1, &dx);
  const std::vector<double> scaled = gradients(1024, &dx_scaled);
  for (double& g : plain) g *= 1024;  // a power of two rounds nothing
  EXPECT_EQ(scaled, plain);
  EXPECT_EQ(dx_scaled.data<float>()[0], 1024 * dx.data<float>()[0]);
}

TEST_F(TapeTest, ALossThatDoesNotReachTheInputGivesZeros) {
  Own(MakeMlp({3, 4, 2}, {}));
  Tape tape;
  Diary diary;
  const Tensor x = tape.Watch(Draws("x", {6, 3}));
  Backward(tape, Loss(tape, x.Detached()), diary, Mode::kWhole);
  EXPECT_FALSE(tape.InputGrad(x).defined());
  auto zeros = tape.InputGradOrZeros(*kernels_, x);
  ASSERT_TRUE(zeros.ok()) << zeros.status();
  EXPECT_EQ(zeros->shape(), x.shape());
  EXPECT_EQ(ValuesOf(*zeros), std::vector<double>(18, 0.0));
}

TEST_F(TapeTest, OnlyALossBeginsWithoutAGradient) {
  Tape tape;
  Context ctx(*kernels_, &tape);
  const Tensor y = ops::Relu(ctx, tape.Watch(Draws("x", {4, 3})));
  Diary diary;
  BackwardPass pass(tape, *kernels_, diary, Mode::kWhole);
  pass.Seed(y);
  EXPECT_EQ(pass.Next().status().message(),
            "backward begins at a loss, or at an output with its gradient; "
            "[4, 3] is no loss; give a gradient with it");
}

// The sink is also notified of parameters behind a branch that the loss does
// not use, or a bucket would wait for them for ever.
TEST_F(TapeTest, ABranchWithoutALossIsStillReported) {
  Own(MakeMlp({3, 3}, {}));
  Tape tape;
  Context ctx(*kernels_, &tape);
  Tensor x = tape.Watch(Draws("x", {2, 3}));
  Tensor unused = (*model_)(ctx, x);
  Tensor loss =
      ops::MeanSquaredError(ctx, ops::Relu(ctx, x), Draws("t", {2, 3}));
  Diary diary;
  Backward(tape, loss, diary, Mode::kWhole);
  EXPECT_NE(diary.text.find("complete 1.weight\n"), std::string::npos);
  EXPECT_NE(diary.text.find("read 1.bias\n"), std::string::npos);
  EXPECT_FALSE(parameters_[0]->grad_written);
  EXPECT_TRUE(tape.InputGrad(x).defined());
}

// Otherwise code that waits for the parameters of a tape would wait for ever.
TEST_F(TapeTest, AParameterThatFeedsNoOpIsNotWaitedFor) {
  Own(MakeMlp({3, 3}, {}));
  Parameter idle;
  idle.value = Draws("idle", {3});
  Tape tape;
  Context ctx(*kernels_, &tape);
  ctx.Use(idle);
  EXPECT_TRUE(tape.parameters().empty());
  Tensor loss = Loss(tape, Draws("x", {2, 3}));
  EXPECT_EQ(tape.parameters(), parameters_);
  Diary diary;
  Backward(tape, loss, diary, Mode::kWhole);
  EXPECT_EQ(diary.text,
            "complete 1.weight\ncomplete 1.bias\n"
            "read 1.weight\nread 1.bias\n");
  EXPECT_TRUE(tape.parameters().empty()) << "the sink knows all";
}

TEST_F(TapeTest, AnOutputReachesWhatItWasComputedFrom) {
  Tape tape;
  Context ctx(*kernels_, &tape);
  const Tensor x = tape.Watch(Draws("x", {4, 3}));
  const Tensor other = tape.Watch(Draws("other", {4, 3}));
  const Tensor y = ops::Relu(ctx, x), z = ops::Relu(ctx, y);
  const Tensor beside = ops::Relu(ctx, y);
  const Tensor sum = ops::Add(ctx, z, ops::Relu(ctx, other.Detached()));
  const Tape::Reach reach = tape.ReachOf(sum);
  for (const Tensor& reached : {x, y, z, sum}) {
    EXPECT_TRUE(reach.Has(reached.tape_ref()));
  }
  for (const Tensor& unreached : {other, beside, sum.Detached()}) {
    EXPECT_FALSE(reach.Has(unreached.tape_ref()));
  }
  EXPECT_FALSE(tape.ReachOf(x.Detached()).Has(x.tape_ref()));
  tape.Reset();
  EXPECT_FALSE(tape.ReachOf(sum).Has(x.tape_ref()));
}

TEST_F(TapeTest, AViewOfATrackedTensorHasNoGradient) {
  Tape tape;
  const Tensor x = tape.Watch(Draws("x", {4, 3}));
  for (const Tensor& view :
       {x.View({12}), x.Slice(1, 2), x.FlatView(2, {2, 2})}) {
    Context ctx(*kernels_, &tape);
    EXPECT_FALSE(ops::Relu(ctx, view).defined());
    EXPECT_EQ(ctx.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(ctx.status().message(),
              absl::StrCat("relu: input 0 of ", view.shape().ToString(),
                           " is a view of a tracked [4, 3]; a view of a "
                           "tracked tensor has no gradient; use ops::Flatten "
                           "or another op, or Detached() for a constant"));
  }
  Context ctx(*kernels_, &tape);
  EXPECT_TRUE(ops::Relu(ctx, x.View({12}).Detached()).defined());
  EXPECT_TRUE(ops::Relu(ctx, x.Slice(0, 4)).defined()) << "it is x itself";
}

TEST_F(TapeTest, BackwardBeginsOnlyWithTheShapeOfTheOutput) {
  Tape tape;
  Context ctx(*kernels_, &tape);
  Tensor y = ops::Relu(ctx, tape.Watch(Draws("x", {4, 3})));
  Diary diary;
  auto message = [&](const Tensor& output, const Tensor& dy) {
    BackwardPass pass(tape, *kernels_, diary, Mode::kWhole);
    pass.Seed(output, dy);
    return std::string(pass.Next().status().message());
  };
  EXPECT_EQ(message(y, Draws("dy", {2, 3})),
            "backward begins at an output of [4, 3], got [2, 3]");
  EXPECT_EQ(message(y.Slice(0, 1), Draws("dy", {4, 3})),
            "backward begins at an output of [4, 3], got [1, 3]");
  EXPECT_EQ(message(y, Draws("dy", {4, 3})), "");
}

// Backward frees activations as it proceeds.
TEST_F(TapeTest, BackwardFreesWhatItHasUsed) {
  Own(MakeMlp({64, 64, 64, 64}, {}));
  const Tensor x = Draws("x", {64, 64});
  const auto idle = kernels_->allocator().stats().bytes_in_use;
  Tape tape;
  Diary diary;
  Tensor loss = Loss(tape, x);
  const auto full = kernels_->allocator().stats().bytes_in_use;
  BackwardPass pass(tape, *kernels_, diary, Mode::kWhole);
  pass.Seed(loss);
  for (int piece = 0; piece < 4; ++piece) ASSERT_TRUE(*pass.Next());
  EXPECT_LT(kernels_->allocator().stats().bytes_in_use, full);
  Run(pass);
  loss = Tensor();
  EXPECT_EQ(kernels_->allocator().stats().bytes_in_use, idle);
}

}  // namespace
}  // namespace troupe::nn
