#include "nn/autograd/context.h"

#include <algorithm>
#include <exception>

#include "absl/strings/str_cat.h"
#include "base/exception_text.h"
#include "base/field_error.h"
#include "base/status_error.h"
#include "base/usage_error.h"

namespace troupe::nn {
namespace {

// y = x. In backward, the gradient of the popped tensor is added here.
class StashNode final : public Node {
 public:
  const char* name() const override { return "stash"; }
  absl::Status BackwardInputs(Kernels&, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    dx[0] = dy;
    return absl::OkStatus();
  }
};

template <typename T>
void AddOnce(T* one, std::vector<T*>& all) {
  if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
}

}  // namespace

double ShapeRecord::flops() const {
  double sum = 0;
  for (const Op& op : ops) sum += op.flops;
  return sum;
}

Tensor Context::Fail(const absl::Status& status) {
  if (status_.ok()) {
    const std::string where = path();
    status_ = where.empty() ? status
                            : base::WithMessage(
                                  status, absl::StrCat("in module ", where,
                                                       ": ", status.message()));
  }
  return Tensor();
}

Tensor Context::FailThrown() {
  try {
    throw;
  } catch (const base::StatusError& error) {
    return Fail(error.status());
  } catch (const base::UsageError& error) {
    return Fail(absl::InvalidArgumentError(error.what()));
  } catch (const std::exception&) {
    return Fail(
        absl::InternalError(base::ExceptionText(std::current_exception())));
  }
}

void Context::Throw() {
  const absl::Status status = status_;
  if (path_.empty()) status_ = absl::OkStatus();
  throw base::StatusError(status);
}

void Context::BeginStep() {
  draws_.drawn.clear();
  stashed_ = StashedTensors();
  if (draws_.position) ++draws_.position->step;
}

void Context::ThrowNoKernels() {
  throw base::UsageError(
      "a shape-only forward has no kernels: ask Context::computes() first");
}

Tensor Context::FailUnbound(const char* kind, const std::string& name) {
  return Fail(absl::InvalidArgumentError(
      absl::StrCat(kind, " ", name,
                   " has no memory: either the model has none yet (an arena "
                   "gives it), or it was declared after the model was made; "
                   "declare it, and add its module, in the constructor")));
}

std::string Context::path() const {
  std::string path;
  for (const std::string* name : path_) {
    if (name->empty()) continue;
    absl::StrAppend(&path, path.empty() ? "" : ".", *name);
  }
  return path;
}

Collectives* Context::collectives(absl::string_view axis) {
  if (shape_only()) {
    auto& seen = record_->axes;
    if (std::find(seen.begin(), seen.end(), axis) == seen.end()) {
      seen.emplace_back(axis);
    }
    return nullptr;
  }
  if (!training_ && axis == "dp") return nullptr;
  for (const AxisCollectives& here : axes_) {
    if (here.axis == axis) return here.collectives;
  }
  return nullptr;
}

Tensor Context::Use(Parameter& parameter) {
  if (ABSL_PREDICT_FALSE(parameter.tied_to != nullptr)) {
    return Use(*parameter.tied_to);
  }
  if (shape_only()) {
    AddOnce(&parameter, record_->parameters);
    record_->uses.push_back({&parameter, path()});
    return Tensor::Meta(parameter.shape, parameter.dtype, device_);
  }
  if (parameter.value.is_meta()) {
    return FailUnbound("parameter", parameter.name);
  }
  if (parameter.unused && tape_ != nullptr) {
    return Fail(absl::InvalidArgumentError(absl::StrCat(
        "parameter ", parameter.name,
        " is used, but the shape-only forward did not use it: use it there "
        "too, or freeze it (requires_grad = false)")));
  }
  if (gate_ != nullptr && parameter.requires_grad) {
    const absl::Status status = gate_->AwaitValue(parameter);
    if (!status.ok()) return Fail(status);
  }
  if (uses_ != nullptr && parameter.requires_grad) {
    AddOnce(&parameter, *uses_);
  }
  return tape_ ? tape_->Leaf(parameter) : parameter.value;
}

Tensor Context::Use(Buffer& buffer) {
  if (shape_only()) {
    AddOnce(&buffer, record_->buffers);
    return Tensor::Meta(buffer.shape, buffer.dtype, device_);
  }
  if (buffer.value.is_meta()) return FailUnbound("buffer", buffer.name);
  return buffer.value.Detached();
}

std::optional<SampleDraws> Context::Random(Purpose purpose) {
  if (!draws_.position) {
    Fail(absl::FailedPreconditionError(
        "a layer draws random numbers, and the context has no position in the "
        "job to draw at: call Context::set_random()"));
    return std::nullopt;
  }
  const std::uint32_t hash = HashName(path());
  // A module that draws twice, or is used twice, must not draw the same.
  const auto again = static_cast<std::uint32_t>(
      std::count(draws_.drawn.begin(), draws_.drawn.end(), hash));
  draws_.drawn.push_back(hash);
  SampleDraws draws{RandomKey(draws_.position->seed, purpose), {}};
  draws.first.step = static_cast<std::uint32_t>(draws_.position->step);
  draws.first.position = static_cast<std::uint32_t>(draws_.position->sample);
  draws.first.path = hash + again * 0x9e3779b9u;  // 2^32 / golden ratio
  return draws;
}

void Context::Stash(absl::string_view name, const Tensor& x) {
  if (!ok()) return;
  Tensor stashed = x;
  if (tape_ != nullptr) {
    const absl::Status fits = tape_->CheckInputs("stash", {x});
    if (!fits.ok()) {
      Fail(fits);
      return;
    }
    stashed = tape_->Record(std::make_unique<StashNode>(), {x},
                            /*num_weights=*/0, x);
  }
  const absl::Status added = stashed_.Add(name, path(), stashed);
  if (!added.ok()) Fail(added);
}

Tensor Context::Pop(absl::string_view name) {
  if (!ok()) return Tensor();
  absl::StatusOr<Tensor> taken = stashed_.Take(name, path());
  return taken.ok() ? *std::move(taken) : Fail(taken.status());
}

Tensor Context::Empty(const char* op, const Shape& shape, DType dtype) {
  if (shape_only()) return Tensor::Meta(shape, dtype, device_);
  absl::StatusOr<Tensor> output =
      Tensor::Create(shape, dtype, kernels_->allocator());
  if (output.ok()) return *std::move(output);
  return Fail(base::WithMessage(
      output.status(), absl::StrCat(op, ": ", output.status().message())));
}

void Context::Note(const char* op, const Tensor& output, double flops) {
  if (!shape_only()) return;
  record_->ops.push_back({path(), op, output.shape(), output.dtype(), flops});
}

}  // namespace troupe::nn
