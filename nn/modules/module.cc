#include "nn/modules/module.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::nn {

Parameter& Module::Declare(absl::string_view name, const Shape& shape,
                           const Initializer& init, DType dtype) {
  CheckIsNew(name);
  auto parameter = std::make_unique<Parameter>();
  parameter->name = std::string(name);
  parameter->shape = shape;
  parameter->dtype = dtype;
  parameter->init = init;
  parameter->value = Tensor::Meta(shape, dtype, Device{});
  parameters_.emplace_back(name, std::move(parameter));
  return *parameters_.back().second;
}

void Module::CheckIsNew(absl::string_view name) const {
  bool taken = false;
  for (const auto& [other, parameter] : parameters_) taken |= other == name;
  for (const auto& child : children_) taken |= child->name_ == name;
  TROUPE_CHECK(
      !taken, absl::StrCat("a module has one parameter or child \"", name, "\"")
                  .c_str());
}

Module& Module::AddChild(absl::string_view name,
                         std::unique_ptr<Module> child) {
  CheckIsNew(name);
  child->name_ = std::string(name);
  children_.push_back(std::move(child));
  return *children_.back();
}

std::vector<Parameter*> Module::Parameters() {
  std::vector<Parameter*> all;
  Collect("", all);
  return all;
}

void Module::Collect(const std::string& prefix, std::vector<Parameter*>& all) {
  for (auto& [name, parameter] : parameters_) {
    parameter->name = absl::StrCat(prefix, name);
    all.push_back(parameter.get());
  }
  for (auto& child : children_) {
    child->Collect(absl::StrCat(prefix, child->name_, "."), all);
  }
}

absl::StatusOr<Tensor> ShapeOnlyForward(Module& module, const Shape& input,
                                        DType dtype, Device device,
                                        ShapeRecord& record) {
  module.Parameters();  // sets the full names
  Context ctx(device, record);
  Tensor output = module(ctx, Tensor::Meta(input, dtype, device));
  if (!ctx.ok()) return ctx.status();
  return output;
}

}  // namespace troupe::nn
