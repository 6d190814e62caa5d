// Comparison of the op suite with PyTorch: every case of
// tests/golden/ops_*.safetensors, described there as JSON.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/golden/golden_file.h"
#include "tests/nn/ops/op_suite.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

using Json = nlohmann::json;

// Runs cases on `kernels`, one after another. Images are (N, C, H, W) in the
// files.
class GoldenOps {
 public:
  GoldenOps(const GoldenFile& golden, DType dtype, Kernels& kernels)
      : golden_(golden), dtype_(dtype), kernels_(kernels) {}

  void Run(const Json& c) {
    SCOPED_TRACE(name_ = c["name"].get<std::string>());
    const std::string op = c["op"];
    if (op == "linear") return Linear(c);
    if (op == "conv2d") return Conv2d(c);
    if (op == "max_pool2d" || op == "avg_pool2d") return Pool2d(c);
    if (op == "relu") return Relu(c);
    if (op == "cross_entropy" || op == "mse") return Loss(c);
    if (op == "sgd") return Sgd(c);
    ADD_FAILURE() << "no op is called " << op;
  }

  double worst() const { return worst_; }

 private:
  Tensor Input(const std::string& what, const Shape& shape, double scale = 1) {
    return MakeTensor(
        shape, dtype_,
        GoldenInput(absl::StrCat(name_, "/", what), shape.numel(), scale),
        kernels_.allocator());
  }
  Tensor Image(const std::string& what, const Shape& nchw) {
    Tensor nhwc = Empty({nchw[0], nchw[2], nchw[3], nchw[1]});
    Ok(kernels_.NchwToNhwc(Input(what, nchw), nhwc));
    return nhwc;
  }
  Tensor Empty(const Shape& shape) {
    return Tensor::Empty(shape, dtype_, kernels_.allocator());
  }
  void Ok(const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; }

  void Expect(const std::string& what, const std::vector<double>& got) {
    const std::vector<double> want =
        golden_.Values(absl::StrCat(name_, "/", what));
    EXPECT_TRUE(Near(got, want, OpTolerance(dtype_))) << what;
    const Difference difference = Compare(got, want);
    worst_ = std::max({worst_, difference.norm, difference.max});
  }
  void Expect(const std::string& what, const Tensor& got) {
    Expect(what, ValuesOf(got));
  }
  void ExpectImage(const std::string& what, const Tensor& nhwc) {
    Tensor nchw = Empty({nhwc.dim(0), nhwc.dim(3), nhwc.dim(1), nhwc.dim(2)});
    Ok(kernels_.NhwcToNchw(nhwc, nchw));
    Expect(what, nchw);
  }

  void Linear(const Json& c) {
    const Shape x_shape = ShapeOf(c["x"]);
    const std::int64_t M = c["out"];
    Tensor x = Input("x", x_shape), w = Input("w", {M, x_shape[1]});
    Tensor dy = Input("dy", {x_shape[0], M});
    Tensor b, db;
    if (c["bias"]) b = Input("b", {M}), db = Empty({M});
    Tensor y = Empty({x_shape[0], M}), dx = Empty(x_shape);
    Tensor dw = Empty(w.shape());
    Ok(kernels_.LinearForward(x, w, b, y));
    Ok(kernels_.LinearBackwardInput(dy, w, dx));
    Ok(kernels_.LinearBackwardWeight(x, dy, /*accumulate=*/false, dw, db));
    Expect("y", y);
    Expect("dx", dx);
    Expect("dw", dw);
    if (db.defined()) Expect("db", db);
  }

  static Window2d WindowOf(const Json& c) {
    return {c["kernel"][0], c["kernel"][1], c["stride"][0],
            c["stride"][1], c["pad"][0],    c["pad"][1]};
  }

  void Conv2d(const Json& c) {
    const Window2d win = WindowOf(c);
    Tensor x = Image("x", ShapeOf(c["x"]));
    const std::int64_t O = c["out"];
    Tensor w = Input("w", {O, x.dim(3), win.kernel_h, win.kernel_w});
    Tensor b, db;
    if (c["bias"]) b = Input("b", {O}), db = Empty({O});
    const std::int64_t P = win.OutH(x.dim(1)), Q = win.OutW(x.dim(2));
    Tensor dy = Image("dy", {x.dim(0), O, P, Q});
    Tensor y = Empty(dy.shape()), dx = Empty(x.shape()), dw = Empty(w.shape());
    Ok(kernels_.Conv2dForward(win, x, w, b, y));
    Ok(kernels_.Conv2dBackwardInput(win, dy, w, dx));
    Ok(kernels_.Conv2dBackwardWeight(win, x, dy, /*accumulate=*/false, dw, db));
    ExpectImage("y", y);
    ExpectImage("dx", dx);
    Expect("dw", dw);
    if (db.defined()) Expect("db", db);
  }

  void Pool2d(const Json& c) {
    const Window2d win = WindowOf(c);
    Tensor x = Image("x", ShapeOf(c["x"]));
    const std::int64_t P = win.OutH(x.dim(1)), Q = win.OutW(x.dim(2));
    Tensor dy = Image("dy", {x.dim(0), x.dim(3), P, Q});
    Tensor y = Empty(dy.shape()), dx = Empty(x.shape());
    if (c["op"] == "max_pool2d") {
      Tensor argmax =
          Tensor::Empty(y.shape(), DType::kI32, kernels_.allocator());
      Ok(kernels_.MaxPool2dForward(win, x, y, argmax));
      Ok(kernels_.MaxPool2dBackward(win, dy, argmax, dx));
    } else {
      Ok(kernels_.AvgPool2dForward(win, AvgDivisor::kPaddedImage, x, y));
      Ok(kernels_.AvgPool2dBackward(win, AvgDivisor::kPaddedImage, dy, dx));
    }
    ExpectImage("y", y);
    ExpectImage("dx", dx);
  }

  void Relu(const Json& c) {
    const Shape shape = ShapeOf(c["x"]);
    Tensor y = Empty(shape), dx = Empty(shape);
    Ok(kernels_.ReluForward(Input("x", shape), y));
    Ok(kernels_.ReluBackward(y, Input("dy", shape), dx));
    Expect("y", y);
    Expect("dx", dx);
  }

  void Loss(const Json& c) {
    const Shape shape = ShapeOf(c["x"]);
    Tensor x = Input("x", shape, c.value("scale", 1.0));
    Tensor dx = Empty(shape);
    Tensor stats = Tensor::Empty({3}, DType::kF64, kernels_.allocator());
    if (c["op"] == "mse") {
      Ok(kernels_.PairLoss({PairLossFunction::kSquaredError}, x,
                           Input("target", shape), stats, dx));
    } else {
      const std::vector<double> labels =
          GoldenLabels(name_ + "/target", shape[0], shape[1],
                       /*ignore_fifth=*/true);
      Tensor target = MakeTensor({shape[0]}, DType::kI64, labels,  //
                                 kernels_.allocator());
      Ok(kernels_.SoftmaxCrossEntropy(x, target, kIgnoredLabel, stats, dx));
    }
    Expect("stats", stats);
    Expect("dx", dx);
  }

  void Sgd(const Json& c) {
    SgdRule rule;
    rule.momentum = c["momentum"];
    rule.dampening = c["dampening"];
    rule.weight_decay = c["weight_decay"];
    rule.nesterov = c["nesterov"];
    StepScalars values;
    values.lr = c["lr"];
    values.loss_count = 1;
    Tensor scalars = HostScalars(values, kernels_.allocator());
    const std::int64_t n = c["n"];
    Tensor p = Input("p", {n});
    Tensor momentum = rule.momentum != 0 ? Empty({n}) : Tensor();
    std::vector<double> trajectory;
    for (int i = 0; i < c["steps"]; ++i) {
      Ok(kernels_.SgdUpdate(rule, scalars, Input(absl::StrCat("g", i), {n}), p,
                            momentum));
      ScalarsIn(scalars).step += 1;
      for (double value : ValuesOf(p)) trajectory.push_back(value);
    }
    Expect("p", trajectory);
  }

  const GoldenFile& golden_;
  const DType dtype_;
  Kernels& kernels_;
  std::string name_;
  double worst_ = 0;
};

TEST_P(BackendSuite, AgreesWithPyTorch) {
  int compared = 0;
  for (DType dtype : GetParam().dtypes) {
    if (dtype != DType::kF32 && dtype != DType::kF64) continue;
    auto golden = GoldenFile::Open(absl::StrCat("ops_", DTypeName(dtype)));
    ASSERT_TRUE(golden.ok()) << golden.status();
    const auto kernels = GetParam().create();
    GoldenOps ops(*golden, dtype, *kernels);
    for (const Json& c : golden->spec()["cases"]) {
      ops.Run(c);
      ++compared;
    }
    RecordProperty(absl::StrCat("worst_", DTypeName(dtype)),
                   absl::StrCat(ops.worst()));
  }
  EXPECT_GT(compared, 15);
}

}  // namespace
}  // namespace troupe::nn
