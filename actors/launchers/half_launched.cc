#include "actors/launchers/half_launched.h"

#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/check.h"

namespace troupe::actors {
namespace {

// Variables of one launcher.
struct LauncherVariables {
  absl::Span<const char* const> counts;   // Numbers of processes or nodes
  absl::Span<const char* const> indices;  // Positions of this one
  absl::Span<const char* const> needed;   // Names that every process has
};

constexpr const char* kTorchCounts[] = {"WORLD_SIZE", "LOCAL_WORLD_SIZE",
                                        "GROUP_WORLD_SIZE"};
constexpr const char* kTorchIndices[] = {"RANK", "LOCAL_RANK", "GROUP_RANK"};
constexpr const char* kTorchNeeds[] = {"RANK", "WORLD_SIZE"};
constexpr const char* kPetCounts[] = {"PET_NNODES"};
constexpr const char* kPetIndices[] = {"PET_NODE_RANK"};
constexpr const char* kPetNeeds[] = {"PET_NODE_RANK", "PET_NNODES"};
constexpr const char* kSlurmCounts[] = {"SLURM_STEP_NUM_TASKS"};
constexpr const char* kSlurmIndices[] = {"SLURM_STEP_ID"};
constexpr const char* kSlurmNeeds[] = {"SLURM_PROCID", "SLURM_STEP_NODELIST"};

constexpr LauncherVariables kTorch = {kTorchCounts, kTorchIndices, kTorchNeeds};
constexpr LauncherVariables kPet = {kPetCounts, kPetIndices, kPetNeeds};
constexpr LauncherVariables kSlurmStep = {kSlurmCounts, kSlurmIndices,
                                          kSlurmNeeds};

// Returns the first variable of a launcher that tells of several processes;
// null: none.
const char* FirstSet(const Variables& environment,
                     const LauncherVariables& variables) {
  std::int64_t number = 0;
  for (const char* name : variables.counts) {
    const std::string text = environment.Text(name);
    // "1:4", from one node to four, is a count of PET_NNODES, too.
    if (absl::SimpleAtoi(text.substr(text.rfind(':') + 1), &number) &&
        number != 1) {
      return name;
    }
  }
  for (const char* name : variables.indices) {
    if (absl::SimpleAtoi(environment.Text(name), &number)) return name;
  }
  return nullptr;
}

absl::Status Check(const Variables& environment,
                   const LauncherVariables& variables) {
  const char* const set = FirstSet(environment, variables);
  if (set == nullptr) return absl::OkStatus();
  for (const char* needed : variables.needed) {
    if (environment.Has(needed)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        environment.Show(set), " is set and ", needed,
        " is not: each process would train alone; set both, or unset ", set));
  }
  return absl::OkStatus();
}

}  // namespace

bool IsSlurmScript(const Variables& environment) {
  const std::string step = environment.Text("SLURM_STEP_ID");
  return step == "4294967290" ||  // SLURM_INTERACTIVE_STEP
         step == "4294967291";    // SLURM_BATCH_SCRIPT
}

absl::Status CheckNotHalfLaunched(const Variables& environment) {
  TROUPE_RETURN_IF_ERROR(Check(environment, kTorch));
  TROUPE_RETURN_IF_ERROR(Check(environment, kPet));
  if (IsSlurmScript(environment)) return absl::OkStatus();
  return Check(environment, kSlurmStep);
}

}  // namespace troupe::actors
