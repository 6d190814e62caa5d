// Writes a plan as JSON text, which is sent between processes and saved with a
// checkpoint, and reads it back.
//
//   const std::string text = PlanToJson(plan);
//   absl::StatusOr<Plan> read = PlanFromJson(text);   // from anywhere
//   PlanHash(*read) == PlanHash(plan);                // true
//
// The text is canonical: equal plans give equal text, with the fields in one
// order, so that its hash compares plans; a flag that is not set is left out.
// Tables are written as their text (pipeline/table/schedule.h); their needs
// follow from it.
//
// PlanFromJson takes text from untrusted sources: the plan that it returns
// passes Plan::Check, and an error (kInvalidArgument) names the field, as
// "stages[1].buckets[0][3]". The text must have every field and no other.
// PlanFromEarlierJson reads the text of a checkpoint, which an earlier version
// may have written: a field that this version did not have gets the value that
// describes how jobs ran then.
// Limits: kPlanBytesMax of text, kPlanDepthMax brackets within each other,
// kPlanStagesMax stages, kPlanNameMax letters in a name. Linear in the text.
// Any thread may call the functions.

#ifndef PIPELINE_PLAN_JSON_H_
#define PIPELINE_PLAN_JSON_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pipeline/plan.h"

namespace troupe::pipeline {

inline constexpr char kPlanFormat[] = "troupe plan 1";
inline constexpr std::size_t kPlanBytesMax = std::size_t{16} << 20;
inline constexpr int kPlanDepthMax = 8;
inline constexpr int kPlanStagesMax = 4096;
inline constexpr std::size_t kPlanNameMax = 1024;
// Limit on the kinds of devices that a plan has algorithms for.
inline constexpr std::size_t kPlanAlgorithmDevicesMax = 16;

// `plan` must pass Plan::Check.
std::string PlanToJson(const Plan& plan);
absl::StatusOr<Plan> PlanFromJson(absl::string_view text);
absl::StatusOr<Plan> PlanFromEarlierJson(absl::string_view text);

// Returns the 64-bit FNV-1a hash of PlanToJson(plan), which is the same on
// every machine. Equal plans have equal hashes. It is not cryptographic.
std::uint64_t PlanHash(const Plan& plan);

}  // namespace troupe::pipeline

#endif  // PIPELINE_PLAN_JSON_H_
