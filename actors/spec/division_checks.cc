#include "actors/spec/division_checks.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/field_error.h"

namespace troupe::actors {

absl::Status CheckOwners(const pipeline::PlanOptions& options,
                         const nn::Optimizer& optimizer) {
  if (options.owners() == 1) return absl::OkStatus();
  using Options = pipeline::PlanOptions;
  const std::string stage = absl::StrCat(
      base::FieldName<&Options::zero_stage>(), " = ", options.zero_stage);
  const pipeline::Mesh& mesh = options.mesh;
  if (mesh.size() > mesh.tp() * mesh.dp() * mesh.pp()) {
    return base::FieldError<&Options::zero_stage>(absl::StrCat(
        stage, " takes a mesh of tp, dp and pp alone, not ", mesh.ToString(),
        "; set it to 0, or leave the other axis out"));
  }
  if (!optimizer.IsElementwise() && !optimizer.SumsParameters()) {
    return base::FieldError<&Options::zero_stage>(absl::StrCat(
        stage,
        " gives each rank a slice of the optimizer's states, and this "
        "optimizer needs whole parameters (it is not IsElementwise(), and does "
        "not say SumsParameters()); set it to 0, or take another optimizer"));
  }
  return absl::OkStatus();
}

absl::Status CheckPieces(const pipeline::Plan& plan,
                         const nn::Optimizer& optimizer, nn::Kernels& kernels) {
  if (plan.gathers_values() && kernels.queues() != nullptr) {
    using Options = pipeline::PlanOptions;
    return base::WithFields<&Options::zero_stage>(absl::UnimplementedError(
        absl::StrCat(base::FieldName<&Options::zero_stage>(),
                     " = 3 releases parameters between their uses, which this "
                     "device, which runs kernels in queues, cannot do yet; use "
                     "the cpu, or set it to 2")));
  }
  if (!plan.SplitsParameters() || optimizer.IsElementwise() ||
      optimizer.SumsParameters()) {
    return absl::OkStatus();
  }
  const std::string tp = pipeline::AxisFieldName("tp");
  return base::WithFields(
      absl::UnimplementedError(absl::StrCat(
          tp, " = ", plan.mesh.tp(),
          " gives ranks pieces of parameters, and this optimizer needs whole "
          "ones (it is not IsElementwise(), and does not say "
          "SumsParameters()); set it to 1, or take another optimizer")),
      {tp});
}

}  // namespace troupe::actors
