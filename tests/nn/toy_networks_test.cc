// The networks of PyTorch's tutorials, an MLP with MSE and a CNN with cross
// entropy: forward, loss, all gradients and ten steps of SGD with momentum
// equal PyTorch's, in f32 on every cpu kernel set and in f64 on the reference.

#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/arena/parameter_arena.h"
#include "nn/autograd/context.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/models/models.h"
#include "nn/ops/loss.h"
#include "nn/optim/sgd.h"
#include "tests/golden/golden_file.h"
#include "tests/nn/testing/host_scalars.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

struct Setup {
  std::string name;
  std::function<std::unique_ptr<Kernels>()> create;
  DType dtype;
  double tolerance;
};

struct NoSink : GradientSink {
  void GradientComplete(Parameter&) override {}
  void LastReaderDone(Parameter&) override {}
};

// Returns the elements of a network's tensor that a golden file stores: all, or
// evenly spaced ones.
std::vector<double> Stored(const std::vector<double>& all, std::size_t count) {
  std::vector<double> picked(count);
  for (std::size_t i = 0; i < count; ++i) {
    picked[i] = all[i * all.size() / count];
  }
  return picked;
}

class ToyNetwork {
 public:
  ToyNetwork(const std::string& net, const Setup& setup)
      : net_(net),
        setup_(setup),
        kernels_(setup.create()),
        golden_(
            *GoldenFile::Open(absl::StrCat(net, "_", DTypeName(setup.dtype)))),
        spec_(golden_.spec()) {
    ModelOptions options;
    options.dtype = setup.dtype;
    model_ = net == "mlp" ? MakeMlp({10, 10, 5}, options)
                          : *MakeLeNet({32, 32, 3}, 10, options);
    parameters_ = model_->Parameters();
    arena_ = *ParameterArena::Create({parameters_}, {}, kernels_->allocator());
    sgd_ = std::make_unique<Sgd>(
        SgdOptions{spec_["lr"], spec_["momentum"], 0, 0, false});
    EXPECT_TRUE(sgd_->Attach(*arena_).ok());
  }

  void FillParameters() {
    ASSERT_EQ(parameters_.size(), spec_["parameters"].size());
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const nlohmann::json& p = spec_["parameters"][i];
      const Shape shape = ShapeOf(p["shape"]);
      ASSERT_EQ(parameters_[i]->shape, shape);
      const Tensor filled = Input(p["name"], shape, p["scale"]);
      std::memcpy(parameters_[i]->value.raw(), filled.raw(), filled.bytes());
    }
  }

  void FillBatch() {
    const Shape shape = ShapeOf(spec_["x"]);
    x_ = Input("x", shape, 1);
    if (shape.rank() == 4) {
      Tensor nhwc = Tensor::Empty({shape[0], shape[2], shape[3], shape[1]},
                                  setup_.dtype, kernels_->allocator());
      ASSERT_TRUE(kernels_->NchwToNhwc(x_, nhwc).ok());
      x_ = nhwc;
      target_ = MakeTensor({shape[0]}, DType::kI64,
                           GoldenLabels("cnn/target", shape[0], 10,
                                        /*ignore_fifth=*/false),
                           kernels_->allocator());
    } else {
      target_ = Input("target", {shape[0], 5}, 1);
    }
  }

  // Runs forward and, with a tape, backward. Returns the mean loss.
  double Run(Tape* tape) {
    Context ctx(*kernels_, tape);
    output_ = (*model_)(ctx, x_);
    const Tensor stats = spec_["loss"] == "mse"
                             ? ops::MeanSquaredError(ctx, output_, target_)
                             : ops::SoftmaxCrossEntropy(ctx, output_, target_);
    EXPECT_TRUE(ctx.ok()) << ctx.status();
    count_ = stats.data<double>()[ops::kLossCount];
    if (tape != nullptr) {
      NoSink sink;
      BackwardPass backward(*tape, *kernels_, sink, BackwardPass::Mode::kWhole);
      backward.Seed(stats);
      absl::StatusOr<bool> more = true;
      while (more.ok() && *more) more = backward.Next();
      EXPECT_TRUE(more.ok()) << more.status();
    }
    return stats.data<double>()[ops::kLossSum] / count_;
  }

  // Troupe's gradients are of the sum; PyTorch's of the mean.
  void ExpectGradients() {
    Expect("output", ValuesOf(output_));
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      std::vector<double> grad = ValuesOf(parameters_[i]->grad);
      for (double& value : grad) value /= count_;
      Expect("grad/" + NameOf(i), grad);
    }
  }

  void Update(int step) {
    const Tensor scalars =
        ScalarsFor(*sgd_, step, count_, kernels_->allocator());
    ASSERT_TRUE(sgd_->Update(*kernels_, scalars, *arena_, 0).ok());
    arena_->BeginStep();
  }

  void ExpectFinalParameters() {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      Expect("final/" + NameOf(i), ValuesOf(parameters_[i]->value));
    }
  }

  void ExpectLosses(const std::vector<double>& losses) {
    EXPECT_TRUE(Near(losses, golden_.Values("losses"), setup_.tolerance));
    Note("losses", Compare(losses, golden_.Values("losses")));
  }

  int steps() const { return spec_["steps"]; }
  // Returns the largest difference so far, and its tensor.
  std::string worst() const {
    return absl::StrCat(worst_, " in ", worst_tensor_);
  }

 private:
  std::string NameOf(std::size_t i) const {
    return spec_["parameters"][i]["name"];
  }

  Tensor Input(const std::string& what, const Shape& shape, double scale) {
    return MakeTensor(
        shape, setup_.dtype,
        GoldenInput(absl::StrCat(net_, "/", what), shape.numel(), scale),
        kernels_->allocator());
  }

  void Expect(const std::string& what, const std::vector<double>& got) {
    const std::vector<double> want = golden_.Values(what);
    const std::vector<double> mine = Stored(got, want.size());
    EXPECT_TRUE(Near(mine, want, setup_.tolerance)) << what;
    Note(what, Compare(mine, want));
    double squares = 0, largest = 0;
    for (double value : got) {
      squares += value * value;
      largest = std::max(largest, std::fabs(value));
    }
    const std::vector<double> whole = golden_.Values(what + "#whole");
    EXPECT_NEAR(std::sqrt(squares), whole[0], setup_.tolerance * whole[0]);
    EXPECT_NEAR(largest, whole[1], setup_.tolerance * whole[1]) << what;
  }

  void Note(const std::string& what, const Difference& difference) {
    const double larger = std::max(difference.norm, difference.max);
    if (larger <= worst_) return;
    worst_ = larger;
    worst_tensor_ = what;
  }

  const std::string net_;
  const Setup setup_;
  const std::unique_ptr<Kernels> kernels_;
  const GoldenFile golden_;
  const nlohmann::json& spec_;
  std::unique_ptr<Sequential> model_;
  std::vector<Parameter*> parameters_;
  std::unique_ptr<ParameterArena> arena_;
  std::unique_ptr<Sgd> sgd_;
  Tensor x_, target_, output_;
  double count_ = 0;
  double worst_ = 0;
  std::string worst_tensor_;
};

class ToyNetworksTest : public testing::TestWithParam<Setup> {
 protected:
  void TrainAndCompare(const std::string& net) {
    ToyNetwork toy(net, GetParam());
    toy.FillParameters();
    toy.FillBatch();
    std::vector<double> losses;
    for (int step = 0; step < toy.steps(); ++step) {
      Tape tape;
      losses.push_back(toy.Run(&tape));
      if (step == 0) toy.ExpectGradients();
      toy.Update(step);
    }
    toy.ExpectFinalParameters();
    losses.push_back(toy.Run(nullptr));
    toy.ExpectLosses(losses);
    RecordProperty(net + "_worst", toy.worst());
  }
};

TEST_P(ToyNetworksTest, TheMlpTrainsAsInPyTorch) { TrainAndCompare("mlp"); }
TEST_P(ToyNetworksTest, TheCnnTrainsAsInPyTorch) { TrainAndCompare("cnn"); }

std::vector<Setup> Setups() {
  std::vector<Setup> setups = {
      {"reference_f64", [] { return CreateReferenceKernels(); }, DType::kF64,
       1e-12},
      {"reference_f32", [] { return CreateReferenceKernels(); }, DType::kF32,
       1e-5}};
  const std::pair<base::CpuIsa, const char*> sets[] = {
      {base::CpuIsa::kPlain, "plain"},
      {base::CpuIsa::kAvx2, "avx2"},
      {base::CpuIsa::kAvx512, "avx512"}};
  auto add = [&](const std::string& name, const CpuKernelOptions& options) {
    setups.push_back({"cpu_" + name,
                      [options] { return CreateCpuKernels(options); },
                      DType::kF32, 1e-5});
  };
  CpuKernelOptions options;
  options.onednn = false;
  for (auto [isa, name] : sets) {
    options.isa = isa;
    if (isa <= base::BestCpuIsa()) add(name, options);
  }
  add("onednn", CpuKernelOptions());
  return setups;
}

INSTANTIATE_TEST_SUITE_P(KernelSets, ToyNetworksTest,
                         testing::ValuesIn(Setups()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace troupe::nn
