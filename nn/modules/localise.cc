#include "nn/modules/localise.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/field_error.h"

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

}  // namespace

absl::Status LocaliseModel(Module& model, absl::Span<const AxisPlace> places) {
  model.Parameters();  // sets the full names
  TROUPE_RETURN_IF_ERROR(LocaliseBelow(model, /*path=*/"", places));
  for (const Parameter* p : model.Parameters()) {
    if (!p->sharding.is_split() || p->other_names.empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("parameter ", p->name, " is also ", p->other_names[0],
                     " and cannot be cut along ", p->sharding.axis,
                     "; leave its layer whole, or do not tie it"));
  }
  return absl::OkStatus();
}

}  // namespace troupe::nn
