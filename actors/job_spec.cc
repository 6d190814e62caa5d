#include "actors/job_spec.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/field_error.h"
#include "comm/local/local_group.h"

namespace troupe::actors {
namespace {

template <auto kField>
absl::Status NotNegative(const JobSpec& spec) {
  if (spec.*kField >= 0) return absl::OkStatus();
  return base::FieldError<kField>(absl::StrCat(
      base::FieldName<kField>(), " = ", spec.*kField, ": must be at least 0"));
}

}  // namespace

absl::Status CheckNumbers(const JobSpec& spec) {
  TROUPE_RETURN_IF_ERROR(NotNegative<&JobSpec::steps>(spec));
  TROUPE_RETURN_IF_ERROR(NotNegative<&JobSpec::epochs>(spec));
  TROUPE_RETURN_IF_ERROR(NotNegative<&JobSpec::eval_every>(spec));
  if (spec.steps > 0 && spec.epochs > 0) {
    return base::FieldError<&JobSpec::epochs, &JobSpec::steps>(absl::StrCat(
        base::FieldName<&JobSpec::steps>(), " and ",
        base::FieldName<&JobSpec::epochs>(), " are both set; remove one"));
  }
  const pipeline::Mesh& mesh = spec.plan.mesh;
  TROUPE_RETURN_IF_ERROR(pipeline::WithAxisFields(mesh.Check(), mesh));
  if (mesh.size() <= comm::kLocalGroupSizeMax) return absl::OkStatus();
  return pipeline::WithAxisFields(
      absl::InvalidArgumentError(absl::StrCat(
          "mesh ", mesh.ToString(), " has ", mesh.size(),
          " ranks; one process has at most ", comm::kLocalGroupSizeMax)),
      mesh);
}

}  // namespace troupe::actors
