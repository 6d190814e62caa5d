// Tables of tokens and logits that ranks along "tp" share by rows of the
// vocabulary, on threads: one rank, which has all of them, is the judge.

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/modules/embedding.h"
#include "nn/modules/linear.h"
#include "nn/modules/localise.h"
#include "nn/modules/parameter_dtype.h"
#include "nn/ops/loss.h"
#include "tests/nn/modules/kernel_sets.h"
#include "tests/nn/modules/meeting.h"
#include "tests/nn/modules/one_pass.h"

namespace troupe::nn {
namespace {

// Calls run(coord) on a thread for each rank.
void OnRanks(int ranks, const std::function<void(int coord)>& run) {
  std::vector<std::thread> threads;
  for (int coord = 0; coord < ranks; ++coord) threads.emplace_back(run, coord);
  for (std::thread& thread : threads) thread.join();
}

// Statistics and gradient of a loss of logits [rows, classes].
struct LossValues {
  std::vector<double> stats, dlogits;
  absl::Status status;
};

struct LossCase {
  std::int64_t rows, classes;
  std::vector<double> logits, targets;
  ops::CrossEntropyOptions options;
};

// Draws logits, among them equal ones, and targets.
LossCase DrawCase(std::int64_t rows, std::int64_t classes,
                  const ops::CrossEntropyOptions& options) {
  LossCase c = {rows, classes, NormalDraws("logits", rows * classes), {}, {}};
  for (double& value : c.logits) value = std::round(4 * value) / 2;
  for (std::int64_t i = 0; i < rows; ++i) {
    c.targets.push_back(static_cast<double>((5 * i + 3) % classes));
  }
  c.options = options;
  return c;
}

// Runs the loss of the columns that a rank has; of all, if there is one rank.
LossValues RunLoss(const LossCase& c, const KernelSet& set, int coord,
                   Meeting& meeting) {
  const auto kernels = set.create();
  const std::int64_t piece = (c.classes + meeting.size() - 1) / meeting.size();
  // Padding is no number, so that whatever reads it is found.
  std::vector<double> own(c.rows * piece, std::nan(""));
  for (std::int64_t i = 0; i < c.rows * piece; ++i) {
    const std::int64_t column = coord * piece + i % piece;
    if (column >= c.classes) continue;
    own[i] = c.logits[i / piece * c.classes + column];
  }
  RankOfMeeting rank(&meeting, coord);
  const AxisCollectives axes[] = {{"tp", &rank}};
  Tape tape;
  Context ctx(*kernels, &tape);
  ctx.set_collectives(axes);
  const Tensor x = tape.Watch(
      MakeTensor({c.rows, piece}, set.dtype, own, kernels->allocator()));
  const Tensor targets =
      MakeTensor({c.rows}, DType::kI64, c.targets, kernels->allocator());
  const ops::LossFn loss = ops::CrossEntropyLoss(c.options);
  const Tensor stats =
      meeting.size() == 1
          ? loss(ctx, x, targets)
          : ops::FindSplitLoss(loss)->split(ctx, x, targets, {"tp", c.classes});
  LossValues values;
  values.status = ctx.status();
  if (!ctx.ok()) return values;
  values.stats = ValuesOf(stats);
  struct NoSink : GradientSink {
    void GradientComplete(Parameter&) override {}
    void LastReaderDone(Parameter&) override {}
  } sink;
  BackwardPass backward(tape, *kernels, sink, BackwardPass::Mode::kWhole);
  backward.SeedLoss(stats, 1);
  absl::StatusOr<bool> more = true;
  while (more.ok() && *more) more = backward.Next();
  EXPECT_TRUE(more.ok()) << more.status();
  values.dlogits = ValuesOf(tape.InputGrad(x));
  return values;
}

// Runs the loss on `tp` ranks. Expects equal statistics and no gradient of
// padding, and joins the gradients.
LossValues RunSplit(const LossCase& c, const KernelSet& set, int tp) {
  Meeting meeting(tp);
  std::vector<LossValues> ranks(tp);
  OnRanks(tp,
          [&](int coord) { ranks[coord] = RunLoss(c, set, coord, meeting); });
  LossValues joined;
  joined.stats = ranks[0].stats;
  joined.dlogits.resize(c.rows * c.classes);
  const std::int64_t piece = (c.classes + tp - 1) / tp;
  for (int coord = 0; coord < tp; ++coord) {
    EXPECT_EQ(ranks[coord].status, absl::OkStatus());
    EXPECT_EQ(ranks[coord].stats, joined.stats);
    for (std::size_t i = 0; i < ranks[coord].dlogits.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      const std::int64_t column = coord * piece + at % piece;
      if (column < c.classes) {
        joined.dlogits[at / piece * c.classes + column] =
            ranks[coord].dlogits[i];
      } else {
        EXPECT_EQ(ranks[coord].dlogits[i], 0);
      }
    }
  }
  return joined;
}

// Every form of options, for that many classes.
std::vector<ops::CrossEntropyOptions> AllOptions(std::int64_t classes) {
  std::vector<ops::CrossEntropyOptions> all;
  for (const double smoothing : {0.0, 0.2}) {
    for (const bool weighted : {false, true}) {
      for (const bool ignores : {false, true}) {
        ops::CrossEntropyOptions options;
        options.label_smoothing = smoothing;
        if (ignores) options.ignore_index = 3;
        for (std::int64_t c = 0; weighted && c < classes; ++c) {
          options.class_weights.push_back(0.25 + 0.5 * (c % 4));
        }
        all.push_back(options);
      }
    }
  }
  return all;
}

TEST(Vocabulary, TheLossOfSplitLogitsIsThatOfWholeOnes) {
  for (const std::int64_t classes : {5, 7, 65}) {
    for (const ops::CrossEntropyOptions& options : AllOptions(classes)) {
      const LossCase c = DrawCase(9, classes, options);
      for (const KernelSet& set : kAllSets) {
        Meeting alone(1);
        const LossValues want = RunLoss(c, set, 0, alone);
        ASSERT_EQ(want.status, absl::OkStatus());
        for (const int tp : {2, 3, 4}) {
          SCOPED_TRACE(absl::StrCat("tp = ", tp, ", ", classes, " classes, ",
                                    "smoothing ", options.label_smoothing,
                                    ", weights ", options.class_weights.size(),
                                    ", ignores ", options.ignore_index));
          const LossValues got = RunSplit(c, set, tp);
          ASSERT_TRUE(Near(got.stats, want.stats, set.tolerance));
          ASSERT_TRUE(Near(got.dlogits, want.dlogits, set.tolerance));
          EXPECT_EQ(got.stats[ops::kLossCount], want.stats[ops::kLossCount]);
          EXPECT_EQ(got.stats[ops::kLossCorrect],
                    want.stats[ops::kLossCorrect]);
        }
      }
    }
  }
}

// The kernels compute in f32, and round the gradient once.
TEST(Vocabulary, TheLossOfSplitLogitsInBf16IsThatOfWholeOnes) {
  const KernelSet bf16 = {kCpuF32.create, DType::kBF16, 4e-3};
  const LossCase c = DrawCase(9, 7, AllOptions(7).back());
  Meeting alone(1);
  const LossValues want = RunLoss(c, bf16, 0, alone);
  ASSERT_EQ(want.status, absl::OkStatus());
  const LossValues got = RunSplit(c, bf16, 2);
  EXPECT_TRUE(Near(got.stats, want.stats, 2e-6));
  EXPECT_TRUE(Near(got.dlogits, want.dlogits, bf16.tolerance));
}

// The first of equal largest logits is the prediction, whichever rank has it.
TEST(Vocabulary, TheFirstOfTheLargestLogitsIsThePrediction) {
  for (std::int64_t target = 0; target < 7; ++target) {
    LossCase c = DrawCase(1, 7, {});
    c.logits = {1, 3, 0, 3, 2, 3, -1};
    c.targets = {static_cast<double>(target)};
    for (const KernelSet& set : {kReferenceF64, kCpuF32}) {
      for (const int tp : {2, 4}) {
        EXPECT_EQ(RunSplit(c, set, tp).stats[ops::kLossCorrect],
                  target == 1 ? 1 : 0)
            << target;
      }
    }
  }
}

TEST(Vocabulary, AllRanksRefuseATargetThatIsNoClass) {
  LossCase c = DrawCase(2, 7, {});
  c.targets = {0, 7};  // 7 is the last rank's padding
  for (const KernelSet& set : {kReferenceF64, kCpuF32}) {
    Meeting meeting(2);
    OnRanks(2, [&](int coord) {
      const absl::Status status = RunLoss(c, set, coord, meeting).status;
      EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
    });
  }
}

// Each rank would count all of them: a loss of log(tp) too much.
TEST(Vocabulary, RefusesGatheredLogits) {
  Meeting meeting(2);
  OnRanks(2, [&](int coord) {
    const auto kernels = CreateReferenceKernels();
    RankOfMeeting rank(&meeting, coord);
    const AxisCollectives axes[] = {{"tp", &rank}};
    Context ctx(*kernels);
    ctx.set_collectives(axes);
    const Tensor whole =
        Tensor::Zeros({1, 7}, DType::kF32, kernels->allocator());
    const Tensor target =
        MakeTensor({1}, DType::kI64, {0}, kernels->allocator());
    ops::SoftmaxCrossEntropy(ctx, whole, target, {}, {"tp", 7});
    EXPECT_EQ(ctx.status(),
              absl::InvalidArgumentError(
                  "cross entropy takes logits of equal pieces of 7 classes for "
                  "2 ranks along tp, got f32[1, 7]; give whole logits to the "
                  "form without a split"));
  });
  EXPECT_EQ(meeting.rounds(), 0);
}

// --- Tables and heads. ---

// Output and gradients of one module that is cut, of rank 0 or joined.
struct ModuleValues {
  std::vector<double> y, evaluated, dx, gradient;
};

ModuleValues RunModule(const std::function<std::unique_ptr<Module>()>& make,
                       const KernelSet& set, int tp, const Shape& x_shape,
                       const Shape& y_shape, std::int64_t tokens) {
  Meeting meeting(tp);
  std::vector<ModuleValues> ranks(tp);
  ModuleValues joined;
  OnRanks(tp, [&](int coord) {
    const auto kernels = set.create();
    std::unique_ptr<Module> module = make();
    SetParameterDType(*module, set.dtype);
    ASSERT_EQ(LocaliseModel(*module, {{"tp", coord, tp}}), absl::OkStatus());
    OnePass pass(*kernels, std::move(module), set.dtype);
    RankOfMeeting rank(&meeting, coord);
    const AxisCollectives axes[] = {{"tp", &rank}};
    if (tp > 1) pass.set_collectives(axes);
    Tensor x = pass.Draws("x", x_shape);
    if (tokens > 0) {
      std::vector<double> numbers;
      for (std::int64_t i = 0; i < x_shape.numel(); ++i) {
        numbers.push_back(static_cast<double>(5 * i % tokens));
      }
      x = MakeTensor(x_shape, DType::kI64, numbers, kernels->allocator());
    }
    PassValues values = pass.Run({x}, pass.Draws("dy", y_shape));
    ModuleValues& own = ranks[coord];
    own.y = values.y;
    own.evaluated = pass.Evaluate(x);
    if (!values.dx.empty()) own.dx = values.dx[0];
    const Parameter& weight = *pass.module().Parameters()[0];
    const std::vector<double>& piece = values.gradients.at(weight.name);
    own.gradient.assign(weight.global_shape.numel(), 0.0);
    std::vector<bool> is_padding(piece.size(), true);
    for (const ShardRange& range : RangesOf(weight)) {
      for (std::int64_t i = 0; i < range.count; ++i) {
        own.gradient[range.global + i] = piece[range.local + i];
        is_padding[range.local + i] = false;
      }
    }
    for (std::size_t i = 0; i < piece.size(); ++i) {
      EXPECT_TRUE(!is_padding[i] || piece[i] == 0) << "padding has a gradient";
    }
  });
  joined = ranks[0];
  for (int coord = 1; coord < tp; ++coord) {
    EXPECT_EQ(ranks[coord].y, joined.y);
    EXPECT_EQ(ranks[coord].evaluated, joined.evaluated);
    EXPECT_EQ(ranks[coord].dx, joined.dx);
    for (std::size_t i = 0; i < joined.gradient.size(); ++i) {
      joined.gradient[i] += ranks[coord].gradient[i];
    }
  }
  return joined;
}

// Lookups add one row and zeros, and gradients rows in one order: all exact.
TEST(Vocabulary, ATableOfPiecesHasTheBitsOfTheWhole) {
  for (const bool pads : {false, true}) {
    const auto make = [pads] {
      Embedding::Options options;
      if (pads) options.padding_index = 4;
      auto table = std::make_unique<Embedding>(7, 3, options);
      table->set_parallel(true);
      return table;
    };
    for (const KernelSet& set : kAllSets) {
      const ModuleValues want =
          RunModule(make, set, 1, {4, 5}, {4, 5, 3}, /*tokens=*/7);
      for (const int tp : {2, 3, 4}) {
        SCOPED_TRACE(absl::StrCat("tp = ", tp, ", ", DTypeName(set.dtype)));
        const ModuleValues got =
            RunModule(make, set, tp, {4, 5}, {4, 5, 3}, /*tokens=*/7);
        EXPECT_EQ(got.y, want.y);
        EXPECT_EQ(got.evaluated, want.evaluated);
        EXPECT_EQ(got.gradient, want.gradient);
      }
    }
  }
}

// A loss that is not declared to take split logits gets all of them, and its
// gradient counts once.
TEST(Vocabulary, AHeadGivesWholeLogits) {
  const auto make = [] {
    auto head = std::make_unique<Linear>(6, 7);
    head->set_parallel(Linear::kVocabulary);
    return head;
  };
  for (const KernelSet& set : kAllSets) {
    const ModuleValues want = RunModule(make, set, 1, {4, 6}, {4, 7}, 0);
    for (const int tp : {2, 3, 4}) {
      SCOPED_TRACE(absl::StrCat("tp = ", tp, ", ", DTypeName(set.dtype)));
      const ModuleValues got = RunModule(make, set, tp, {4, 6}, {4, 7}, 0);
      EXPECT_TRUE(Near(got.y, want.y, set.tolerance));
      EXPECT_TRUE(Near(got.dx, want.dx, set.tolerance));
      EXPECT_TRUE(Near(got.gradient, want.gradient, set.tolerance));
    }
  }
}

TEST(Vocabulary, ATokenOutsideTheWholeTableIsNamed) {
  for (const KernelSet& set : {kReferenceF64, kCpuF32}) {
    Meeting meeting(2);
    OnRanks(2, [&](int coord) {
      const auto kernels = set.create();
      RankOfMeeting rank(&meeting, coord);
      const AxisCollectives axes[] = {{"tp", &rank}};
      Context ctx(*kernels);
      ctx.set_collectives(axes);
      const Tensor piece =
          Tensor::Zeros({4, 2}, set.dtype, kernels->allocator());
      const Tensor tokens =
          MakeTensor({2}, DType::kI64, {6, 7}, kernels->allocator());
      ops::PieceEmbedding(ctx, tokens, piece, /*rows=*/7, "tp");
      EXPECT_TRUE(absl::StrContains(ctx.status().message(),
                                    "index 1 is 7, but the table has 7 rows"))
          << ctx.status();
    });
  }
}

// A loss of one's own is not declared, and so is one that only wraps another.
TEST(Vocabulary, ALossSaysWhetherItTakesSplitLogits) {
  const ops::LossFn declared = ops::CrossEntropyLoss();
  EXPECT_NE(ops::FindSplitLoss(declared), nullptr);
  EXPECT_NE(ops::FindSplitLoss(ops::LossFn(declared)), nullptr);
  EXPECT_EQ(ops::FindSplitLoss(ops::MeanSquaredError), nullptr);
  const ops::LossFn wraps = [declared](Context& ctx, Tensor y,
                                       const Tensor& target) {
    return declared(ctx, std::move(y), target);
  };
  EXPECT_EQ(ops::FindSplitLoss(wraps), nullptr);
}

}  // namespace
}  // namespace troupe::nn
