// A plan as text: JSON that travels between processes and lies beside a
// checkpoint.
//
//   const std::string text = PlanToJson(plan);
//   absl::StatusOr<Plan> read = PlanFromJson(text);   // from anywhere
//   PlanHash(*read) == PlanHash(plan);                // true
//
// The text is canonical: equal plans give equal text, with the fields in one
// order, so that its hash compares plans. Tables are written as their text
// (pipeline/schedule.h); their needs follow from it.
//
// PlanFromJson takes a text that nobody vouches for: what it returns passes
// Plan::Check, and an error (kInvalidArgument) names the field, as
// "stages[1].buckets[0][3]". Every field must be there, and no other. In a text
// that lies beside a checkpoint, fields may be missing that the version which
// wrote it did not know: they have the value that stands for how a job was
// before there was the field.
// Limits: kPlanBytesMax of text, kPlanDepthMax brackets within each other,
// kPlanStagesMax stages, kPlanNameMax letters in a name. Linear in the text.
// No threads, no state.

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
// Kinds of devices that a plan has algorithms for.
inline constexpr std::size_t kPlanAlgorithmDevicesMax = 16;

// `plan` passes Plan::Check.
std::string PlanToJson(const Plan& plan);
absl::StatusOr<Plan> PlanFromJson(absl::string_view text);
absl::StatusOr<Plan> PlanFromEarlierJson(absl::string_view text);

// FNV-1a, 64 bits, over the bytes of PlanToJson(plan): the same on every
// machine. Equal plans have equal hashes; it is no protection against malice.
std::uint64_t PlanHash(const Plan& plan);

}  // namespace troupe::pipeline

#endif  // PIPELINE_PLAN_JSON_H_
