// Lists the fields in which two plans differ, for the message that refuses to
// resume, or to run together.
//
//   Diff(a, b);   // {"mesh[dp].size: 2, 4", "stages[1].buckets[0][2]: 3, 4"}
//
// Fields are those of the plan's text (pipeline/plan_json.h). A list entry is
// identified by its name if it has one, otherwise by its index. Lists of
// different lengths are shown whole; of a value longer than kDiffValueMax
// letters, a part that begins shortly before the difference is shown. The
// result is empty if the plans are equal. Linear in the plans.

#ifndef PIPELINE_PLAN_DIFF_H_
#define PIPELINE_PLAN_DIFF_H_

#include <cstddef>
#include <string>
#include <vector>

#include "pipeline/plan.h"

namespace troupe::pipeline {

inline constexpr std::size_t kDiffValueMax = 60;

std::vector<std::string> Diff(const Plan& a, const Plan& b);

}  // namespace troupe::pipeline

#endif  // PIPELINE_PLAN_DIFF_H_
