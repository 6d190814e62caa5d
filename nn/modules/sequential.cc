#include "nn/modules/sequential.h"

#include <algorithm>

#include "absl/strings/numbers.h"

namespace troupe::nn {

Tensor Sequential::Forward(Context& ctx, const Tensor& x) {
  for (const std::unique_ptr<Module>& child : children()) {
    if (child->many_tensors()) return ForwardOne(ctx, x);
  }
  Tensor y = x;
  for (const std::unique_ptr<Module>& child : children()) y = (*child)(ctx, y);
  return y;
}

Tensor Sequential::ForwardOne(Context& ctx, const Tensor& x) {
  TensorList ys = ForwardMany(ctx, {x});
  if (!ctx.ok()) return Tensor();
  if (ys.size() == 1) return std::move(ys[0]);
  return ctx.Fail(absl::InvalidArgumentError(absl::StrCat(
      "the last module gives ", ys.size(), " tensors where one is wanted")));
}

TensorList Sequential::ForwardMany(Context& ctx, absl::Span<const Tensor> xs) {
  TensorList ys(xs.begin(), xs.end());
  for (const std::unique_ptr<Module>& child : children()) {
    ys = child->CallMany(ctx, ys);
  }
  return ys;
}

int Sequential::NextNumber() const {
  int next = size();
  for (const std::unique_ptr<Module>& child : children()) {
    int number = 0;
    if (!absl::SimpleAtoi(child->name(), &number)) continue;
    next = std::max(next, number + 1);
  }
  return next;
}

absl::StatusOr<std::vector<std::unique_ptr<Sequential>>> Sequential::Cut(
    std::unique_ptr<Sequential> whole, absl::Span<const int> cuts) {
  int before = 0;
  for (int cut : cuts) {
    if (cut <= before || cut >= whole->size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "cut ", cut, " is not inside the model: cuts ascend between 1 and ",
          whole->size() - 1, " for a Sequential of ", whole->size()));
    }
    before = cut;
  }
  std::vector<std::unique_ptr<Sequential>> parts(cuts.size() + 1);
  for (auto& part : parts) part = std::make_unique<Sequential>();
  std::vector<std::unique_ptr<Module>> children = whole->TakeChildren();
  std::size_t part = 0;
  for (int i = 0; i < static_cast<int>(children.size()); ++i) {
    if (part < cuts.size() && i == cuts[part]) ++part;
    const std::string name = children[i]->name();
    parts[part]->AddChild(name, std::move(children[i]));
  }
  return parts;
}

}  // namespace troupe::nn
