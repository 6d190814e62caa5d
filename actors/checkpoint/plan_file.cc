#include "actors/checkpoint/plan_file.h"

#include "absl/strings/str_cat.h"
#include "actors/checkpoint/layout.h"
#include "base/check.h"
#include "pipeline/plan_json.h"

namespace troupe::actors {
namespace {

std::string PathIn(const std::string& folder) {
  return absl::StrCat(folder, "/", kPlanName);
}

}  // namespace

absl::Status WritePlanFile(base::FileSystem& files, const std::string& folder,
                           const pipeline::Plan& plan) {
  return base::WriteWholeFile(files, PathIn(folder),
                              pipeline::PlanToJson(plan));
}

absl::StatusOr<std::optional<pipeline::Plan>> ReadPlanFile(
    base::FileSystem& files, const std::string& folder) {
  const std::string path = PathIn(folder);
  if (!files.Exists(path)) return std::optional<pipeline::Plan>();
  TROUPE_ASSIGN_OR_RETURN(
      const std::string text,
      base::ReadWholeFile(files, path, pipeline::kPlanBytesMax));
  absl::StatusOr<pipeline::Plan> plan = pipeline::PlanFromEarlierJson(text);
  if (plan.ok()) return std::optional<pipeline::Plan>(*std::move(plan));
  return absl::DataLossError(
      absl::StrCat(path, " cannot be used: ", plan.status().message()));
}

}  // namespace troupe::actors
