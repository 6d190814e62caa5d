#include "nn/modules/module.h"

#include "absl/strings/str_cat.h"

namespace troupe::nn {
namespace {

void FailCount(Context& ctx, absl::string_view what, std::size_t got) {
  ctx.Fail(absl::InvalidArgumentError(
      absl::StrCat("the module ", what, " one tensor, not ", got)));
}

}  // namespace

Tensor Module::Forward(Context& ctx, const Tensor& x) {
  if (!many_tensors_) {
    return ctx.Fail(absl::UnimplementedError(
        "the module defines neither Forward() nor, with set_many_tensors(), "
        "ForwardMany()"));
  }
  TensorList ys = ForwardMany(ctx, {x});
  if (!ctx.ok()) return Tensor();
  if (ys.size() == 1) return std::move(ys[0]);
  FailCount(ctx, "was asked for", ys.size());
  return Tensor();
}

TensorList Module::ForwardMany(Context& ctx, absl::Span<const Tensor> xs) {
  if (many_tensors_) {
    ctx.Fail(absl::UnimplementedError(
        "the module has set_many_tensors() and no ForwardMany()"));
  } else if (xs.size() != 1) {
    FailCount(ctx, "takes", xs.size());
  } else {
    return {Forward(ctx, xs[0])};
  }
  return {};
}

TensorList Module::CallMany(Context& ctx, absl::Span<const Tensor> xs) {
  if (!ctx.ok()) return {};
  ctx.Enter(name_);
  TensorList ys;
  try {
    ys = ForwardMany(ctx, xs);
  } catch (const std::exception&) {
    ctx.FailThrown();
  }
  for (const Tensor& y : ys) {
    if (!y.defined() && ctx.ok()) FailUndefined(ctx);
  }
  ctx.Leave();
  return ys;
}

void Module::FailUndefined(Context& ctx) const {
  ctx.Fail(absl::InvalidArgumentError(
      "Forward() returned an undefined tensor and no error"));
}

Parameter& Module::Declare(absl::string_view name, const Shape& shape,
                           const Initializer& init, DType dtype) {
  NoteName(name);
  auto parameter = std::make_unique<Parameter>();
  parameter->name = std::string(name);
  parameter->shape = shape;
  parameter->dtype = dtype;
  parameter->init = init;
  parameter->value = Tensor::Meta(shape, dtype, Device{});
  parameters_.emplace_back(name, std::move(parameter));
  return *parameters_.back().second;
}

Buffer& Module::DeclareBuffer(absl::string_view name, const Shape& shape,
                              double initial, DType dtype) {
  NoteName(name);
  auto buffer = std::make_unique<Buffer>();
  buffer->name = std::string(name);
  buffer->shape = shape;
  buffer->dtype = dtype;
  buffer->initial = initial;
  buffer->value = Tensor::Meta(shape, dtype, Device{});
  buffers_.emplace_back(name, std::move(buffer));
  return *buffers_.back().second;
}

void Module::NoteName(absl::string_view name) {
  bool taken = false;
  for (const auto& [other, parameter] : parameters_) taken |= other == name;
  for (const auto& [other, buffer] : buffers_) taken |= other == name;
  for (const auto& child : children_) taken |= child->name_ == name;
  if (taken && taken_.empty()) taken_ = std::string(name);
}

Module& Module::AddChild(absl::string_view name,
                         std::unique_ptr<Module> child) {
  NoteName(name);
  child->name_ = std::string(name);
  children_.push_back(std::move(child));
  return *children_.back();
}

absl::Status Module::CheckDeclarations() const {
  return CheckDeclarations(name_);
}

absl::Status Module::CheckDeclarations(const std::string& path) const {
  if (!taken_.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path.empty() ? "the model" : absl::StrCat("module ", path),
        " has two parameters, buffers or children named \"", taken_, "\""));
  }
  for (const auto& child : children_) {
    const absl::Status status = child->CheckDeclarations(
        absl::StrCat(path, path.empty() ? "" : ".", child->name_));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

std::vector<Parameter*> Module::Parameters() {
  std::vector<Parameter*> parameters;
  std::vector<Buffer*> buffers;
  Collect("", parameters, buffers);
  return parameters;
}

std::vector<Buffer*> Module::Buffers() {
  std::vector<Parameter*> parameters;
  std::vector<Buffer*> buffers;
  Collect("", parameters, buffers);
  return buffers;
}

void Module::Collect(const std::string& prefix,
                     std::vector<Parameter*>& parameters,
                     std::vector<Buffer*>& buffers) {
  for (auto& [name, parameter] : parameters_) {
    parameter->name = absl::StrCat(prefix, name);
    parameters.push_back(parameter.get());
  }
  for (auto& [name, buffer] : buffers_) {
    buffer->name = absl::StrCat(prefix, name);
    buffers.push_back(buffer.get());
  }
  for (auto& child : children_) {
    child->Collect(absl::StrCat(prefix, child->name_, "."), parameters,
                   buffers);
  }
}

std::string TensorSpec::ToString() const {
  return absl::StrCat(DTypeName(dtype), shape.ToString());
}

absl::StatusOr<Tensor> ShapeOnlyForward(Module& module, const Shape& input,
                                        DType dtype, Device device,
                                        ShapeRecord& record) {
  TROUPE_RETURN_IF_ERROR(module.CheckDeclarations());
  module.Parameters();  // sets the full names
  Context ctx(device, record);
  Tensor output = module(ctx, Tensor::Meta(input, dtype, device));
  if (!ctx.ok()) return ctx.status();
  return output;
}

absl::StatusOr<TensorList> ShapeOnlyForward(Module& module,
                                            absl::Span<const TensorSpec> inputs,
                                            Device device,
                                            ShapeRecord& record) {
  TROUPE_RETURN_IF_ERROR(module.CheckDeclarations());
  module.Parameters();  // sets the full names
  Context ctx(device, record);
  TensorList xs;
  for (const TensorSpec& input : inputs) {
    xs.push_back(Tensor::Meta(input.shape, input.dtype, device));
  }
  TensorList outputs = module.CallMany(ctx, xs);
  if (!ctx.ok()) return ctx.status();
  return outputs;
}

}  // namespace troupe::nn
