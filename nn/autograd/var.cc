#include "nn/autograd/var.h"

#include <cmath>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/status_error.h"
#include "nn/kernels/device_queues.h"
#include "nn/ops/activation.h"
#include "nn/ops/arithmetic.h"
#include "nn/ops/cast.h"
#include "nn/ops/flatten.h"
#include "nn/ops/loss.h"
#include "nn/ops/permute.h"
#include "nn/ops/relu.h"
#include "nn/ops/reshape.h"
#include "nn/ops/slice.h"
#include "nn/ops/softmax.h"

namespace troupe::nn {
namespace {

// Fails the context, for its path, and throws.
template <typename... Args>
[[noreturn]] void Refuse(Context& ctx, const Args&... parts) {
  ctx.Fail(absl::InvalidArgumentError(absl::StrCat(parts...)));
  ctx.Throw();
}

void ThrowIfError(Context& ctx, const absl::Status& status) {
  if (status.ok()) return;
  ctx.Fail(status);
  ctx.Throw();
}

std::string Str(const Tensor& t) {
  return absl::StrCat(DTypeName(t.dtype()), t.shape().ToString());
}

// Returns the tensor in memory that the host may read, with the device's work
// done.
Tensor OnHost(Context& ctx, const Tensor& tensor) {
  if (tensor.is_meta()) {
    Refuse(ctx, "a shape-only forward has no numbers: ", Str(tensor),
           " cannot be read");
  }
  Kernels& kernels = ctx.kernels();
  Tensor host = tensor;
  if (!tensor.host_accessible()) {
    absl::StatusOr<Tensor> copy = CopyToHost(kernels, Queue::kCompute, tensor);
    ThrowIfError(ctx, copy.status());
    host = *std::move(copy);
  }
  ThrowIfError(ctx, Synchronize(kernels, Record(kernels, Queue::kCompute)));
  return host;
}

double ElementOf(Context& ctx, const Tensor& t) {
  switch (t.dtype()) {
    case DType::kF32:
      return t.data<float>()[0];
    case DType::kF64:
      return t.data<double>()[0];
    case DType::kBF16:
      return ToF64(t.data<bf16>()[0]);
    case DType::kF16:
      return ToF64(t.data<f16>()[0]);
    case DType::kI64:
      return static_cast<double>(t.data<std::int64_t>()[0]);
    case DType::kI32:
      return t.data<std::int32_t>()[0];
    default:
      Refuse(ctx, "item() does not read ", Str(t));
  }
}

double MeanOf(Context& ctx, const Tensor& statistics) {
  const Tensor host = OnHost(ctx, statistics);
  return host.data<double>()[ops::kLossSum] /
         host.data<double>()[ops::kLossCount];
}

double CountOf(Context& ctx, const Tensor& statistics) {
  return OnHost(ctx, statistics).data<double>()[ops::kLossCount];
}

class QuietSink final : public GradientSink {
 public:
  void GradientComplete(Parameter&) override {}
  void LastReaderDone(Parameter&) override {}
};

// Returns `value` as a constant that broadcasts to x.
Tensor Constant(Context& ctx, const Tensor& x, double value) {
  Tensor constant = ctx.Empty("constant", Shape(), x.dtype());
  if (ctx.computes()) ThrowIfError(ctx, ctx.kernels().Fill(value, constant));
  return constant;
}

void ChangeInPlace(const Var& x, BinaryFunction f, const Tensor& other) {
  Context& ctx = x.context();
  const Tensor& t = x;
  if (ctx.Tracks({t, other})) {
    Refuse(ctx, "backward needs ", Str(t),
           ": it cannot change in place; write x = x + y, take Detached(), or "
           "hold a NoGrad guard");
  }
  const std::optional<Shape> shape = BroadcastShape(t.shape(), other.shape());
  if (!shape || *shape != t.shape() || t.dtype() != other.dtype()) {
    Refuse(ctx, "a change in place takes a tensor that broadcasts to ", Str(t),
           ", got ", Str(other));
  }
  if (!ctx.computes()) return;
  Tensor to = t;
  ThrowIfError(ctx, ctx.kernels().Binary(f, t, other, to));
}

std::int64_t FromEnd(std::int64_t index, std::int64_t extent) {
  return index < 0 ? index + extent : index;
}

// Returns `axis` counted from 0, of `axes` axes.
int AxisIn(Context& ctx, const char* what, const Tensor& x, int axis,
           int axes) {
  const int from_0 = axis < 0 ? axis + axes : axis;
  if (from_0 < 0 || from_0 >= axes) {
    Refuse(ctx, what, ": ", Str(x), " has no axis ", axis);
  }
  return from_0;
}

std::vector<std::int64_t> ExtentsOf(const Tensor& x) {
  return {x.shape().dims().begin(), x.shape().dims().end()};
}

}  // namespace

Var::Var(Context& ctx, Tensor tensor) : ctx_(&ctx), tensor_(std::move(tensor)) {
  if (!ctx.ok()) ctx.Throw();
  if (!tensor_.defined()) Refuse(ctx, "a Var is made of an undefined tensor");
}

Var Var::Loss(Context& ctx, Tensor statistics, DType dtype) {
  Var loss(ctx, std::move(statistics));
  if (!ops::IsLoss(loss.tensor_)) {
    Refuse(ctx, "the statistics of a loss are f64[3], got ", Str(loss));
  }
  loss.is_loss_ = true;
  loss.of_loss_ = dtype;
  return loss;
}

Context& Var::context() const {
  if (ctx_ == nullptr) {
    throw base::StatusError(absl::InvalidArgumentError(
        "an nn::Var is used that has no value; assign one first"));
  }
  return *ctx_;
}

double Var::item() const {
  Context& ctx = context();
  if (is_loss_) return MeanOf(ctx, tensor_);
  if (numel() != 1) {
    Refuse(ctx, "item() takes one element, or a loss; got ", Str(tensor_));
  }
  return ElementOf(ctx, OnHost(ctx, tensor_));
}

void Var::Backward() const {
  Context& ctx = context();
  Tape* const tape = ctx.tape();
  if (tape == nullptr || !tape->Tracks(tensor_)) {
    Refuse(ctx, "Backward() of ", Str(tensor_),
           tape == nullptr
               ? ": the context has no tape (a NoGrad guard takes it away)"
               : ": nothing that it was computed from is trained, or its "
                 "Backward() was called before");
  }
  if (!is_loss_ && numel() != 1) {
    Refuse(ctx, "Backward() begins at a loss or at one element, not at ",
           Str(tensor_), "; take its Sum() or Mean()");
  }
  BackwardRoot root;
  root.tensor = tensor_;
  if (is_loss_) {
    const double count = CountOf(ctx, tensor_);
    // A loss without targets has no gradient.
    root.scale = count == 0 ? 0 : 1 / count;
  } else {
    root.seed = ctx.Empty("backward", shape(), dtype());
    if (ctx.ok()) ThrowIfError(ctx, ctx.kernels().Fill(1, root.seed));
  }
  if (ctx.ok() && ctx.owner() != nullptr) {
    const absl::StatusOr<bool> done = ctx.owner()->Backward(ctx, root);
    ThrowIfError(ctx, done.status());
    if (*done) return;
  }
  QuietSink quiet;
  GradientSink& sink = ctx.sink() != nullptr ? *ctx.sink() : quiet;
  absl::Status status;
  {
    BackwardPass pass(*tape, ctx.kernels(), sink, BackwardPass::Mode::kWhole);
    if (is_loss_) {
      pass.SeedLoss(root.tensor, root.scale);
    } else {
      pass.Seed(root.tensor, root.seed);
    }
    absl::StatusOr<bool> more = ctx.ok();
    while (more.ok() && *more) more = pass.Next();
    status = more.status();
  }
  tape->Reset();
  if (!ctx.ok()) ctx.Throw();
  ThrowIfError(ctx, status);
}

Var Var::Detached() const {
  Var constant = *this;
  constant.tensor_ = tensor_.Detached();
  return constant;
}

Var Var::Mean() const {
  if (!is_loss_) return *this;
  Context& ctx = context();
  if (ctx.shape_only()) {
    return Var(ctx, ctx.Empty("mean_loss", Shape(), of_loss_));
  }
  const Tensor sum = ops::Reshape(
      ctx, ops::Slice(ctx, tensor_, 0, ops::kLossSum, ops::kLossSum + 1),
      Shape());
  return Var(ctx, ops::Scale(ctx, ops::Cast(ctx, sum, of_loss_),
                             1 / CountOf(ctx, tensor_)));
}

Var Var::View(absl::Span<const std::int64_t> extents) const {
  Context& ctx = context();
  std::vector<std::int64_t> wanted(extents.begin(), extents.end());
  std::int64_t known = 1, *rest = nullptr;
  bool fits = true;
  for (std::int64_t& extent : wanted) {
    if (extent == -1 && rest == nullptr) {
      rest = &extent;
    } else {
      fits = fits && extent >= 0 && extent <= Shape::kMaxNumel;
      known = fits && extent > 0 && known > Shape::kMaxNumel / extent
                  ? Shape::kMaxNumel
                  : known * extent;
    }
  }
  if (rest != nullptr && fits) {
    fits = known > 0 && numel() % known == 0;
    *rest = fits ? numel() / known : 0;
  }
  if (!fits || !Shape::Fits(wanted) || Shape(wanted).numel() != numel()) {
    Refuse(ctx, "view takes a shape of as many elements, got ", Str(tensor_),
           " and {", absl::StrJoin(extents, ", "), "}");
  }
  return Var(ctx, ops::Reshape(ctx, tensor_, Shape(wanted)));
}

Var Var::Flatten() const { return Apply(ops::Flatten); }

Var Var::Unsqueeze(int axis) const {
  std::vector<std::int64_t> extents = ExtentsOf(tensor_);
  const int rank = static_cast<int>(extents.size());
  if (rank == Shape::kMaxRank) {
    Refuse(context(), "unsqueeze: ", Str(tensor_), " has ", rank,
           " axes, the most");
  }
  extents.insert(
      extents.begin() + AxisIn(context(), "unsqueeze", tensor_, axis, rank + 1),
      1);
  return View(extents);
}

Var Var::Squeeze(int axis) const {
  std::vector<std::int64_t> extents = ExtentsOf(tensor_);
  const int at = AxisIn(context(), "squeeze", tensor_, axis,
                        static_cast<int>(extents.size()));
  if (extents[at] != 1) return *this;
  extents.erase(extents.begin() + at);
  return View(extents);
}

Var Var::Squeeze() const {
  std::vector<std::int64_t> extents;
  for (const std::int64_t extent : shape().dims()) {
    if (extent != 1) extents.push_back(extent);
  }
  return View(extents);
}

Var Var::Transpose(int first, int second) const {
  return Apply(ops::Transpose, first, second);
}

Var Var::Permute(absl::Span<const int> axes) const {
  return Apply(ops::Permute, axes);
}

Var Var::operator[](std::int64_t index) const {
  Context& ctx = context();
  const int rank = shape().rank();
  const std::int64_t at = rank == 0 ? -1 : FromEnd(index, dim(0));
  if (rank == 0 || at < 0 || at >= dim(0)) {
    Refuse(ctx, "index ", index, " is outside of ", Str(tensor_));
  }
  std::vector<std::int64_t> extents = ExtentsOf(tensor_);
  extents.erase(extents.begin());
  const Tensor row = ops::Slice(ctx, tensor_, /*axis=*/0, at, at + 1);
  return Var(ctx, ops::Reshape(ctx, row, Shape(extents)));
}

Var Var::Slice(std::int64_t begin, std::int64_t end, int axis) const {
  Context& ctx = context();
  const std::int64_t extent =
      dim(AxisIn(ctx, "slice", tensor_, axis, shape().rank()));
  return Var(ctx, ops::Slice(ctx, tensor_, axis, FromEnd(begin, extent),
                             end == kEnd ? extent : FromEnd(end, extent)));
}

Var Var::Relu() const { return Apply(ops::Relu); }
Var Var::Sigmoid() const { return Apply(ops::Sigmoid); }
Var Var::Tanh() const { return Apply(ops::Tanh); }
Var Var::Softmax(int axis) const { return Apply(ops::Softmax, axis); }
Var Var::LogSoftmax(int axis) const { return Apply(ops::LogSoftmax, axis); }

Var& Var::operator+=(const Var& other) {
  ChangeInPlace(*this, BinaryFunction::kAdd, other.Mean());
  return *this;
}
Var& Var::operator-=(const Var& other) {
  ChangeInPlace(*this, BinaryFunction::kSubtract, other.Mean());
  return *this;
}
Var& Var::operator*=(const Var& other) {
  ChangeInPlace(*this, BinaryFunction::kMultiply, other.Mean());
  return *this;
}
Var& Var::operator/=(const Var& other) {
  ChangeInPlace(*this, BinaryFunction::kDivide, other.Mean());
  return *this;
}
Var& Var::operator+=(double value) {
  ChangeInPlace(*this, BinaryFunction::kAdd, Constant(context(), *this, value));
  return *this;
}
Var& Var::operator-=(double value) { return *this += -value; }
Var& Var::operator*=(double factor) {
  ChangeInPlace(*this, BinaryFunction::kMultiply,
                Constant(context(), *this, factor));
  return *this;
}
Var& Var::operator/=(double divisor) {
  ChangeInPlace(*this, BinaryFunction::kDivide,
                Constant(context(), *this, divisor));
  return *this;
}

Var operator-(const Var& x) { return x.Mean().Apply(ops::Neg); }
Var operator+(const Var& a, const Var& b) {
  return a.Mean().Apply(ops::Add, b.Mean().tensor());
}
Var operator-(const Var& a, const Var& b) {
  return a.Mean().Apply(ops::Sub, b.Mean().tensor());
}
Var operator*(const Var& a, const Var& b) {
  return a.Mean().Apply(ops::Mul, b.Mean().tensor());
}
Var operator/(const Var& a, const Var& b) {
  return a.Mean().Apply(ops::Div, b.Mean().tensor());
}
Var operator+(const Var& a, double b) {
  return a.Mean().Apply(ops::AddScalar, b);
}
Var operator-(const Var& a, double b) { return a + -b; }
Var operator*(const Var& a, double b) { return a.Mean().Apply(ops::Scale, b); }
Var operator/(const Var& a, double b) {
  int exponent;
  const bool power_of_two = std::fabs(std::frexp(b, &exponent)) == 0.5;
  if (power_of_two) return a * (1 / b);  // exact
  const Var plain = a.Mean();
  return plain.Apply(ops::Div, Constant(plain.context(), plain, b));
}
Var operator+(double a, const Var& b) { return b + a; }
Var operator-(double a, const Var& b) {
  const Var plain = b.Mean();
  Context& ctx = plain.context();
  return Var(ctx, ops::Sub(ctx, Constant(ctx, plain, a), plain));
}
Var operator*(double a, const Var& b) { return b * a; }
Var operator/(double a, const Var& b) {
  const Var plain = b.Mean();
  Context& ctx = plain.context();
  return Var(ctx, ops::Div(ctx, Constant(ctx, plain, a), plain));
}

}  // namespace troupe::nn
