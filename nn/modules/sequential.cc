#include "nn/modules/sequential.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"

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
  return ctx.Fail(absl::InvalidArgumentError(
      absl::StrCat("the last module gives ", ys.size(),
                   " tensors; return one from the Forward() of the model")));
}

TensorList Sequential::ForwardMany(Context& ctx, absl::Span<const Tensor> xs) {
  TensorList ys(xs.begin(), xs.end());
  for (const std::unique_ptr<Module>& child : children()) {
    ys = child->CallMany(ctx, ys);
  }
  return ys;
}

Module& Sequential::AppendModule(std::unique_ptr<Module> module,
                                 absl::string_view name) {
  return AddChild(name.empty() ? absl::StrCat(NextNumber()) : std::string(name),
                  std::move(module));
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

bool Sequential::CanCut(absl::Span<const int> cut) const {
  if (cut.empty() || cut[0] < 0 || cut[0] >= size()) return false;
  if (cut.size() == 1) return cut[0] > 0;
  const auto* child = dynamic_cast<const Sequential*>(children()[cut[0]].get());
  return child != nullptr && child->CanCut(cut.subspan(1));
}

std::unique_ptr<Sequential> Sequential::TakeFrom(absl::Span<const int> cut) {
  auto taken = std::make_unique<Sequential>();
  std::vector<std::unique_ptr<Module>> all = TakeChildren();
  for (int i = 0; i < static_cast<int>(all.size()); ++i) {
    const std::string name = all[i]->name();
    if (i == cut[0] && cut.size() > 1) {
      auto& child = static_cast<Sequential&>(*all[i]);
      taken->AddChild(name, child.TakeFrom(cut.subspan(1)));
    }
    const bool stays = i < cut[0] || (i == cut[0] && cut.size() > 1);
    (stays ? *this : *taken).AddChild(name, std::move(all[i]));
  }
  return taken;
}

absl::StatusOr<std::vector<std::unique_ptr<Sequential>>> Sequential::Cut(
    std::unique_ptr<Sequential> whole, absl::Span<const Path> cuts) {
  std::vector<std::unique_ptr<Sequential>> parts(cuts.size() + 1);
  // Cuts from the back, so that the numbers in front stay valid, and a cut that
  // does not ascend finds no module.
  for (std::size_t i = cuts.size(); i > 0; --i) {
    const Path& cut = cuts[i - 1];
    if (!whole->CanCut(cut)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "cut ", absl::StrJoin(cut, "."),
          " is not inside the model: cuts must ascend, and each stand behind "
          "a child of a Sequential"));
    }
    parts[i] = whole->TakeFrom(cut);
  }
  parts[0] = std::move(whole);
  return parts;
}

}  // namespace troupe::nn
