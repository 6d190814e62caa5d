// Values that exist only between two events of a forward or backward: the gate
// and the sink are asked before each reader.

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "nn/models/gpt2.h"
#include "nn/models/models.h"
#include "tests/nn/autograd/tape_fixture.h"

namespace troupe::nn {
namespace {

// Gives parameters their values when they are asked for, and poisons those of
// all others: of a module's, since an op may read several.
class OnDemand final : public Diary, public ParameterGate {
 public:
  explicit OnDemand(const std::vector<Parameter*>& parameters) {
    for (Parameter* p : parameters) {
      values_[p] = {ValuesOf(p->value), ModuleOf(*p)};
      Poison(*p);
    }
  }

  absl::Status AwaitValue(const Parameter& p) override {
    return Give(const_cast<Parameter&>(p));
  }
  absl::Status ValueNeeded(Parameter& p) override { return Give(p); }
  void LastReaderDone(Parameter& p) override { Poison(p); }

  int given = 0;

 private:
  struct Kept {
    std::vector<double> values;
    std::string module;
  };

  static std::string ModuleOf(const Parameter& p) {
    return p.name.substr(0, p.name.rfind('.'));
  }
  static void Poison(const Parameter& p) {
    std::memset(p.value.raw(), 0xff, p.value.bytes());
  }
  absl::Status Give(Parameter& p) {
    const Kept& kept = values_.at(&p);
    if (kept.module != present_) {
      for (const auto& [other, its] : values_) {
        if (its.module == present_) Poison(*other);
      }
      present_ = kept.module;
    }
    std::copy(kept.values.begin(), kept.values.end(), p.value.data<float>());
    ++given;
    return absl::OkStatus();
  }

  std::map<const Parameter*, Kept> values_;
  std::string present_;
};

class ReleasedValuesTest : public TapeTest {
 protected:
  // Returns the gradients of a step on `x`, with values on demand or not.
  std::vector<double> Gradients(const Tensor& x, bool on_demand, Mode mode) {
    arena_->BeginStep();
    EXPECT_TRUE(arena_->Initialize(/*seed=*/1).ok());
    Tape tape;
    Diary diary;
    std::unique_ptr<OnDemand> demand;
    Context ctx(*kernels_, &tape);
    ctx.set_random({/*seed=*/1, /*step=*/2, /*sample=*/3});
    if (on_demand) {
      demand = std::make_unique<OnDemand>(parameters_);
      ctx.set_gate(demand.get());
    }
    GradientSink& sink = demand ? static_cast<Diary&>(*demand) : diary;
    const Tensor y = (*model_)(ctx, x);
    EXPECT_TRUE(ctx.ok()) << ctx.status();
    const Tensor zero =
        Tensor::Zeros(y.shape(), y.dtype(), kernels_->allocator());
    const Tensor loss = ops::MeanSquaredError(ctx, y, zero);
    Backward(tape, loss, sink, mode);
    if (mode == Mode::kInputs) Backward(tape, Tensor(), sink, Mode::kWeights);
    if (on_demand) {
      EXPECT_GE(demand->given, 2 * static_cast<int>(parameters_.size()) - 4);
    }
    return AllGrads();
  }
  void ExpectSameGradients(std::unique_ptr<Module> model, const Tensor& x,
                           const std::string& name) {
    Own(std::move(model));
    for (const Mode mode : {Mode::kWhole, Mode::kInputs}) {
      EXPECT_EQ(Gradients(x, /*on_demand=*/true, mode),
                Gradients(x, /*on_demand=*/false, mode))
          << name << (mode == Mode::kWhole ? "" : ", split");
    }
  }
};

TEST_F(ReleasedValuesTest, EveryReaderAsksBeforeItReads) {
  ExpectSameGradients(MakeMlp({3, 4, 5, 2}, {}), Draws("x", {6, 3}), "mlp");
  ExpectSameGradients(*MakeLeNet({16, 16, 1}, 10, {}),
                      Draws("image", {2, 16, 16, 1}), "lenet");
  const Tensor tokens = MakeTensor(
      {2, 4}, DType::kI64, {1, 5, 2, 0, 3, 3, 6, 1}, kernels_->allocator());
  Gpt2Options gpt;
  gpt.layers = 2;
  gpt.heads = 2;
  gpt.width = 8;
  gpt.context = 4;
  gpt.vocab_size = 7;
  gpt.dropout = 0.2;
  for (const bool tied : {false, true}) {
    gpt.tie_head = tied;
    ExpectSameGradients(*MakeGpt2(gpt), tokens, tied ? "tied gpt" : "gpt");
  }
}

TEST_F(ReleasedValuesTest, SoDoesARecomputedPart) {
  auto model = MakeMlp({3, 4, 5, 2}, {});
  for (const auto& child : model->children()) child->set_recomputes(true);
  ExpectSameGradients(std::move(model), Draws("x", {6, 3}), "mlp");
}

}  // namespace
}  // namespace troupe::nn
