#include "nn/modules/module.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_error.h"
#include "base/type_name.h"
#include "nn/ops/recompute.h"

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
        "the module has no Forward(); define it, or call set_many_tensors() "
        "and define ForwardMany()"));
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
        "the module has set_many_tensors() and no ForwardMany(); define it"));
  } else if (xs.size() != 1) {
    FailCount(ctx, "takes", xs.size());
  } else {
    return {Forward(ctx, xs[0])};
  }
  return {};
}

Tensor Module::ForwardTwice(Context& ctx, const Tensor& x) {
  const auto forward = [this](Context& inner, const Tensor& input) {
    // The second call is from backward, outside the handler of operator().
    try {
      return Forward(inner, input);
    } catch (const std::exception&) {
      return inner.FailThrown();
    }
  };
  return ops::Recompute(ctx, forward, x);
}

TensorList Module::CallMany(Context& ctx, absl::Span<const Tensor> xs) {
  if (!ctx.ok()) return {};
  if (!added_ && ctx.in_module() && HasDeclarations()) {
    FailPlainMember(ctx);
    return {};
  }
  const int names = EnterPath(ctx);
  TensorList ys;
  try {
    ys = ForwardMany(ctx, xs);
  } catch (const std::exception&) {
    ctx.FailThrown();
  }
  for (const Tensor& y : ys) {
    if (!y.defined() && ctx.ok()) FailUndefined(ctx);
  }
  for (int i = 0; i < names; ++i) ctx.Leave();
  return ys;
}

void Module::FailUndefined(Context& ctx) const {
  ctx.Fail(absl::InvalidArgumentError(
      "Forward() returned an undefined tensor and no error; return a tensor, "
      "or call Context::Fail()"));
}

void Module::FailPlainMember(Context& ctx) const {
  ctx.Fail(absl::InvalidArgumentError(absl::StrCat(
      "it calls a ", base::TypeName(typeid(*this)),
      " that was not added to it: as a plain member, a layer with parameters "
      "has no name and is not trained; write, as the member, `Linear& fc = "
      "Add<Linear>(\"fc\", 10, 10);`")));
}

bool Module::HasDeclarations() const {
  const auto has = [](const auto& child) { return child->HasDeclarations(); };
  return !parameters_.empty() || !buffers_.empty() ||
         std::any_of(children_.begin(), children_.end(), has);
}

Parameter& Module::Declare(absl::string_view name, const Shape& shape,
                           const Initializer& init, DType dtype) {
  auto parameter = std::make_shared<Parameter>();
  parameter->name = std::string(name);
  parameter->shape = shape;
  parameter->global_shape = shape;
  parameter->dtype = dtype;
  parameter->init = init;
  parameter->value = Tensor::Meta(shape, dtype, Device{});
  parameters_.emplace_back(name, std::move(parameter));
  return *parameters_.back().second;
}

Buffer& Module::DeclareBuffer(absl::string_view name, const Shape& shape,
                              double initial, DType dtype) {
  auto buffer = std::make_unique<Buffer>();
  buffer->name = std::string(name);
  buffer->shape = shape;
  buffer->dtype = dtype;
  buffer->initial = initial;
  buffer->value = Tensor::Meta(shape, dtype, Device{});
  buffers_.emplace_back(name, std::move(buffer));
  return *buffers_.back().second;
}

std::shared_ptr<Parameter> Module::FindOwn(absl::string_view name) const {
  for (const auto& [own, parameter] : parameters_) {
    if (own != name) continue;
    return parameter->tied_to != nullptr ? parameter->tied_to : parameter;
  }
  return nullptr;
}

Parameter& Module::parameter(absl::string_view name) {
  const std::shared_ptr<Parameter> own = FindOwn(name);
  if (own != nullptr) return *own;
  std::string names;
  for (const auto& [other, unused] : parameters_) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", other);
  }
  throw base::StatusError(absl::NotFoundError(absl::StrCat(
      "a module has no parameter \"", name, "\" of its own; it has ", names)));
}

void Module::TieParameter(absl::string_view name, Module& other,
                          absl::string_view other_name) {
  const auto wrong = [&](absl::string_view what) {
    if (wrong_tie_.empty()) wrong_tie_ = std::string(what);
  };
  const std::shared_ptr<Parameter> own = FindOwn(name);
  const std::shared_ptr<Parameter> to = other.FindOwn(other_name);
  if (own == nullptr || to == nullptr) {
    return wrong(absl::StrCat("ties its parameter \"", name, "\" to \"",
                              other_name, "\", and there is no \"",
                              own == nullptr ? name : other_name, "\""));
  }
  if (own == to) return;
  const TensorSpec is = {own->shape, own->dtype};
  const TensorSpec wanted = {to->shape, to->dtype};
  if (!(is == wanted)) {
    return wrong(absl::StrCat("ties its parameter \"", name, "\", ",
                              is.ToString(), ", to \"", other_name,
                              "\", which is ", wanted.ToString()));
  }
  own->tied_to = to;
}

Module& Module::AddChild(absl::string_view name,
                         std::unique_ptr<Module> child) {
  child->name_ = std::string(name);
  child->added_ = true;
  children_.push_back(std::move(child));
  return *children_.back();
}

std::string Module::FindTaken(std::set<std::string>& names) const {
  for (const auto& [name, parameter] : parameters_) {
    if (!names.insert(name).second) return name;
  }
  for (const auto& [name, buffer] : buffers_) {
    if (!names.insert(name).second) return name;
  }
  for (const auto& child : children_) {
    if (child->name_.empty()) {
      std::string taken = child->FindTaken(names);
      if (!taken.empty()) return taken;
    } else if (!names.insert(child->name_).second) {
      return child->name_;
    }
  }
  return "";
}

absl::Status Module::CheckDeclarations(const std::string& path) const {
  const std::string called =
      path.empty() ? "the model" : absl::StrCat("module ", path);
  std::set<std::string> names;
  const std::string taken = FindTaken(names);
  if (!taken.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        called, " has two parameters, buffers or children named \"", taken,
        "\"; rename one"));
  }
  if (!wrong_tie_.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(called, " ", wrong_tie_));
  }
  for (const auto& child : children_) {
    const char* const dot = path.empty() || child->name_.empty() ? "" : ".";
    TROUPE_RETURN_IF_ERROR(
        child->CheckDeclarations(absl::StrCat(path, dot, child->name_)));
  }
  return absl::OkStatus();
}

// Results of a walk over all modules.
struct Module::Collected {
  std::vector<Parameter*> parameters;
  std::vector<Buffer*> buffers;
  absl::flat_hash_set<const Parameter*> seen;
};

std::vector<Parameter*> Module::Parameters() {
  Collected all;
  Collect("", all);
  return std::move(all.parameters);
}

std::vector<Buffer*> Module::Buffers() {
  Collected all;
  Collect("", all);
  return std::move(all.buffers);
}

void Module::Collect(const std::string& prefix, Collected& all) {
  for (auto& [name, declared] : parameters_) {
    Parameter& parameter = declared->tied_to ? *declared->tied_to : *declared;
    std::string full = absl::StrCat(prefix, name);
    const bool is_new = all.seen.insert(&parameter).second;
    if (is_new) all.parameters.push_back(&parameter);
    if (parameter.keeps_names) continue;
    if (is_new) {
      parameter.name = std::move(full);
      parameter.other_names.clear();
    } else {
      parameter.other_names.push_back(std::move(full));
    }
  }
  for (auto& [name, buffer] : buffers_) {
    buffer->name = absl::StrCat(prefix, name);
    all.buffers.push_back(buffer.get());
  }
  for (auto& child : children_) {
    const char* const dot = child->name_.empty() ? "" : ".";
    child->Collect(absl::StrCat(prefix, child->name_, dot), all);
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
  TROUPE_RETURN_IF_ERROR(ctx.stashed().CheckAllTaken());
  return output;
}

absl::StatusOr<TensorList> ShapeOnlyForward(Module& module,
                                            absl::Span<const TensorSpec> inputs,
                                            Device device,
                                            ShapeRecord& record) {
  StashedTensors stashed;
  TROUPE_ASSIGN_OR_RETURN(
      TensorList outputs,
      ShapeOnlyForward(module, inputs, stashed, device, record));
  TROUPE_RETURN_IF_ERROR(stashed.CheckAllTaken());
  return outputs;
}

absl::StatusOr<TensorList> ShapeOnlyForward(Module& module,
                                            absl::Span<const TensorSpec> inputs,
                                            StashedTensors& stashed,
                                            Device device,
                                            ShapeRecord& record) {
  TROUPE_RETURN_IF_ERROR(module.CheckDeclarations());
  module.Parameters();  // sets the full names
  Context ctx(device, record);
  ctx.stashed() = std::move(stashed);
  TensorList xs;
  for (const TensorSpec& input : inputs) {
    xs.push_back(Tensor::Meta(input.shape, input.dtype, device));
  }
  TensorList outputs = module.CallMany(ctx, xs);
  stashed = std::move(ctx.stashed());
  if (!ctx.ok()) return ctx.status();
  return outputs;
}

}  // namespace troupe::nn
