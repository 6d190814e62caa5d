#include "nn/autograd/context.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace troupe::nn {

double ShapeRecord::flops() const {
  double sum = 0;
  for (const Op& op : ops) sum += op.flops;
  return sum;
}

Tensor Context::Fail(const absl::Status& status) {
  if (status_.ok()) {
    const std::string where = path();
    status_ =
        where.empty()
            ? status
            : absl::Status(status.code(), absl::StrCat("in module ", where,
                                                       ": ", status.message()));
  }
  return Tensor();
}

std::string Context::path() const {
  std::string path;
  for (const std::string* name : path_) {
    if (name->empty()) continue;
    absl::StrAppend(&path, path.empty() ? "" : ".", *name);
  }
  return path;
}

Tensor Context::Use(Parameter& parameter) {
  if (shape_only()) {
    auto& seen = record_->parameters;
    if (std::find(seen.begin(), seen.end(), &parameter) == seen.end()) {
      seen.push_back(&parameter);
    }
    return Tensor::Meta(parameter.shape, parameter.dtype, device_);
  }
  TROUPE_CHECK(!parameter.value.is_meta() && parameter.value.defined(),
               "a ParameterArena was bound before the first real forward");
  return tape_ ? tape_->Leaf(parameter) : parameter.value;
}

Tensor Context::Empty(const Shape& shape, DType dtype) {
  return shape_only() ? Tensor::Meta(shape, dtype, device_)
                      : Tensor::Empty(shape, dtype, kernels_->allocator());
}

void Context::Note(const char* op, const Tensor& output, double flops) {
  if (!shape_only()) return;
  record_->ops.push_back({path(), op, output.shape(), flops});
}

}  // namespace troupe::nn
