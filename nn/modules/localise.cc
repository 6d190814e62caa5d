#include "nn/modules/localise.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/field_error.h"
#include "nn/modules/linear.h"
#include "nn/modules/sequential.h"

namespace troupe::nn {
namespace {

absl::Status LocaliseBelow(Module& module, const std::string& path,
                           absl::Span<const AxisPlace> places) {
  const absl::Status status = module.Localise(places);
  if (!status.ok()) {
    return base::WithMessage(
        status, absl::StrCat(path.empty() ? "the model" : "layer ", path, ": ",
                             status.message()));
  }
  for (const auto& child : module.children()) {
    const char* const dot = path.empty() || child->name().empty() ? "" : ".";
    TROUPE_RETURN_IF_ERROR(
        LocaliseBelow(*child, absl::StrCat(path, dot, child->name()), places));
  }
  return absl::OkStatus();
}

// Returns the layer that computes the model's output, if only modules of lists
// stand around it.
Module& LastLayer(Module& model) {
  Module* last = &model;
  while (dynamic_cast<Sequential*>(last) != nullptr &&
         !last->children().empty()) {
    last = last->children().back().get();
  }
  return *last;
}

}  // namespace

std::optional<ops::SplitLogits> KeepLogitsSplit(Module& model) {
  auto* const head = dynamic_cast<Linear*>(&LastLayer(model));
  return head != nullptr ? head->KeepSplit() : std::nullopt;
}

absl::Status LocaliseModel(Module& model, absl::Span<const AxisPlace> places) {
  for (const Parameter* p : model.Parameters()) {  // sets the full names
    if (!p->sharding.is_split()) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("parameter ", p->name,
                     " is a piece already; call LocaliseModel() once"));
  }
  for (const AxisPlace& place : places) {
    if (!place.sequence || place.size <= 1 || model.shares_tokens()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the model does not declare that ranks along ", place.axis,
        " may share the tokens of its sequences; let its layers declare it and "
        "call set_shares_tokens() (docs/parallelism.md), or leave sequence "
        "parallelism out"));
  }
  TROUPE_RETURN_IF_ERROR(LocaliseBelow(model, /*path=*/"", places));
  for (const Parameter* p : model.Parameters()) {
    const int modules = 1 + static_cast<int>(p->other_names.size());
    if (p->sharding.holders >= modules) continue;
    if (p->sharding.partial_grad) {
      return absl::InvalidArgumentError(absl::StrCat(
          "parameter ", p->name, " is also ", p->other_names[0],
          " and cannot be used for a rank's tokens by one of them alone; "
          "declare both alike, or do not tie them"));
    }
    if (!p->sharding.is_split()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("parameter ", p->name, " is also ", p->other_names[0],
                     " and cannot be cut along ", p->sharding.axis,
                     " by one of them alone; cut both alike, leave them whole, "
                     "or do not tie them"));
  }
  return absl::OkStatus();
}

}  // namespace troupe::nn
