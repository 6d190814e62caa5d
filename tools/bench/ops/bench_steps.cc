#include "tools/bench/ops/bench_steps.h"

#include <utility>

#include "tools/bench/ops/op_bench_util.h"

namespace troupe::bench {
namespace {

using absl::OkStatus;
using absl::Status;
using nn::DType;
using nn::Kernels;
using nn::Shape;
using nn::Tensor;
using nn::Window2d;

constexpr Window2d kFive{5, 5}, kHalve{2, 2, 2, 2};

// Parameters and gradients in contiguous memory, as in the trainer.
struct Arena {
  Tensor values, grads;
  std::int64_t used = 0;

  Arena(std::int64_t size, Kernels& k)
      : values(Numbers({size}, k, 0.1f)), grads(Numbers({size}, k)) {}
  std::pair<Tensor, Tensor> Take(const Shape& shape) {
    const std::int64_t begin = used;
    used += shape.numel();
    return {values.FlatView(begin, shape), grads.FlatView(begin, shape)};
  }
};

struct Layer {
  std::pair<Tensor, Tensor> w, b;  // value, gradient
  Tensor y, dy;
};

// Linear layers with ReLU between; sizes[0] is the number of input features.
class Mlp {
 public:
  Mlp(std::int64_t batch, std::vector<std::int64_t> sizes, bool bias,
      Arena& arena, Kernels& k)
      : k_(k) {
    for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
      Layer layer;
      layer.w = arena.Take({sizes[i + 1], sizes[i]});
      if (bias) layer.b = arena.Take({sizes[i + 1]});
      layer.y = Numbers({batch, sizes[i + 1]}, k);
      layer.dy = Numbers({batch, sizes[i + 1]}, k);
      layers_.push_back(layer);
    }
  }

  Status Forward(const Tensor& x) {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      Layer& l = layers_[i];
      TROUPE_RETURN_IF_ERROR(k_.LinearForward(i ? layers_[i - 1].y : x,
                                              l.w.first, l.b.first, l.y));
      if (i + 1 == layers_.size()) break;
      TROUPE_RETURN_IF_ERROR(k_.ReluForward(l.y, l.y));
    }
    return OkStatus();
  }

  // `dx` may be undefined.
  Status Backward(const Tensor& x, Tensor& dx) {
    for (std::size_t i = layers_.size(); i-- > 0;) {
      Layer& l = layers_[i];
      TROUPE_RETURN_IF_ERROR(k_.LinearBackwardWeight(
          i ? layers_[i - 1].y : x, l.dy, false, l.w.second, l.b.second));
      if (i == 0 && !dx.defined()) break;
      Tensor& below = i ? layers_[i - 1].dy : dx;
      TROUPE_RETURN_IF_ERROR(k_.LinearBackwardInput(l.dy, l.w.first, below));
      if (i == 0) break;
      TROUPE_RETURN_IF_ERROR(k_.ReluBackward(layers_[i - 1].y, below, below));
    }
    return OkStatus();
  }

  Layer& last() { return layers_.back(); }

 private:
  Kernels& k_;
  std::vector<Layer> layers_;
};

struct Step {
  explicit Step(std::int64_t parameters, Kernels& k)
      : k(k),
        arena(parameters, k),
        stats(Tensor::Zeros({3}, DType::kF64, k.allocator())),
        scalars(nn::HostScalars({}, k.allocator())) {}

  Status Update(double divisor) {
    nn::StepScalars values;
    values.lr = 1e-3;
    values.loss_count = divisor;
    TROUPE_RETURN_IF_ERROR(k.SetStepScalars(values, scalars));
    return k.SgdUpdate(nn::SgdRule(), scalars, arena.grads, arena.values, none);
  }

  Kernels& k;
  Arena arena;
  Tensor stats, none, scalars;
};

Tensor Labels(std::int64_t n, std::int64_t classes, Kernels& k) {
  Tensor labels = Tensor::Zeros({n}, DType::kI64, k.allocator());
  for (std::int64_t i = 0; i < n; ++i) {
    labels.data<std::int64_t>()[i] = i % classes;
  }
  return labels;
}

struct MlpStep : Step {
  MlpStep(std::int64_t batch, const std::vector<std::int64_t>& sizes,
          std::int64_t parameters, bool bias, bool classes, Kernels& k)
      : Step(parameters, k),
        net(batch, sizes, bias, arena, k),
        x(Numbers({batch, sizes.front()}, k)),
        target(Numbers({batch, sizes.back()}, k)) {
    if (classes) labels = Labels(batch, sizes.back(), k);
  }

  Status Run() {
    TROUPE_RETURN_IF_ERROR(net.Forward(x));
    Layer& out = net.last();
    if (labels.defined()) {
      TROUPE_RETURN_IF_ERROR(
          k.SoftmaxCrossEntropy(out.y, labels, -100, stats, out.dy));
    } else {
      TROUPE_RETURN_IF_ERROR(k.PairLoss({nn::PairLossFunction::kSquaredError},
                                        out.y, target, stats, out.dy));
    }
    TROUPE_RETURN_IF_ERROR(net.Backward(x, none));
    return Update(stats.data<double>()[1]);
  }

  Mlp net;
  Tensor x, target, labels;
};

struct Conv {
  Conv(const Shape& x, std::int64_t o, Arena& arena, Kernels& k)
      : w(arena.Take({o, x[3], 5, 5})),
        b(arena.Take({o})),
        y(Numbers({x[0], x[1] - 4, x[2] - 4, o}, k)),
        dy(Numbers(y.shape(), k)),
        pooled(Numbers({x[0], y.dim(1) / 2, y.dim(2) / 2, o}, k)),
        dpooled(Numbers(pooled.shape(), k)),
        at(Tensor::Zeros(pooled.shape(), DType::kI32, k.allocator())) {}

  Status Forward(const Tensor& x, Kernels& k) {
    TROUPE_RETURN_IF_ERROR(k.Conv2dForward(kFive, x, w.first, b.first, y));
    TROUPE_RETURN_IF_ERROR(k.ReluForward(y, y));
    return k.MaxPool2dForward(kHalve, y, pooled, at);
  }

  Status Backward(const Tensor& x, Tensor& dx, Kernels& k) {
    TROUPE_RETURN_IF_ERROR(k.MaxPool2dBackward(kHalve, dpooled, at, dy));
    TROUPE_RETURN_IF_ERROR(k.ReluBackward(y, dy, dy));
    TROUPE_RETURN_IF_ERROR(
        k.Conv2dBackwardWeight(kFive, x, dy, false, w.second, b.second));
    if (!dx.defined()) return OkStatus();
    return k.Conv2dBackwardInput(kFive, dy, w.first, dx);
  }

  std::pair<Tensor, Tensor> w, b;
  Tensor y, dy, pooled, dpooled, at;
};

// conv 6@5x5 - relu - pool - conv 16@5x5 - relu - pool - 120 - 84 - 10
struct CnnStep : Step {
  explicit CnnStep(Kernels& k)
      : Step(62006, k),
        x(Numbers({16, 32, 32, 3}, k)),
        first({16, 32, 32, 3}, 6, arena, k),
        second({16, 14, 14, 6}, 16, arena, k),
        net(16, {400, 120, 84, 10}, true, arena, k),
        flat(Numbers({16, 16, 5, 5}, k)),
        dflat(Numbers({16, 16, 5, 5}, k)),
        labels(Labels(16, 10, k)) {}

  Status Run() {
    TROUPE_RETURN_IF_ERROR(first.Forward(x, k));
    TROUPE_RETURN_IF_ERROR(second.Forward(first.pooled, k));
    TROUPE_RETURN_IF_ERROR(k.NhwcToNchw(second.pooled, flat));
    const Tensor features = flat.View({16, 400});
    TROUPE_RETURN_IF_ERROR(net.Forward(features));
    Layer& out = net.last();
    TROUPE_RETURN_IF_ERROR(
        k.SoftmaxCrossEntropy(out.y, labels, -100, stats, out.dy));
    Tensor dfeatures = dflat.View({16, 400});
    TROUPE_RETURN_IF_ERROR(net.Backward(features, dfeatures));
    TROUPE_RETURN_IF_ERROR(k.NchwToNhwc(dflat, second.dpooled));
    TROUPE_RETURN_IF_ERROR(second.Backward(first.pooled, first.dpooled, k));
    TROUPE_RETURN_IF_ERROR(first.Backward(x, none, k));
    return Update(stats.data<double>()[1]);
  }

  Tensor x;
  Conv first, second;
  Mlp net;
  Tensor flat, dflat, labels;
};

template <typename S>
OpBenchCase CaseOf(std::shared_ptr<S> step, double flops) {
  OpBenchCase c;
  c.flops = flops;
  c.run = [step] { return step->Run(); };
  return c;
}

}  // namespace

OpBenchCase StepCase(const std::string& name, Kernels& k) {
  using Sizes = std::vector<std::int64_t>;
  if (name == "toy_mlp") {
    return CaseOf(std::make_shared<MlpStep>(20, Sizes{10, 10, 5}, 165, true,
                                            /*classes=*/false, k),
                  2.0 * 20 * (2 * 100 + 3 * 50));
  }
  if (name == "mnist_mlp") {
    return CaseOf(std::make_shared<MlpStep>(64, Sizes{784, 512, 512, 10},
                                            669706, true, /*classes=*/true, k),
                  2.0 * 64 * (2 * 784 * 512 + 3 * (512 * 512 + 5120)));
  }
  if (name == "mlp_25m") {
    constexpr double kWeights = 2236.0 * 2236.0;
    return CaseOf(
        std::make_shared<MlpStep>(64, Sizes{2236, 2236, 2236, 2236, 2236, 2236},
                                  5 * 2236 * 2236, false, /*classes=*/false, k),
        2.0 * 64 * 14 * kWeights);
  }
  if (name == "toy_cnn") {
    return CaseOf(std::make_shared<CnnStep>(k),
                  2 * 11.29e6 + 3 * 7.68e6 + 3 * 32.0 * 58920);
  }
  return {};
}

}  // namespace troupe::bench
