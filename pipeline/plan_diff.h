// Where two plans differ, field by field, for the message that refuses to
// resume, or to run together.
//
//   Diff(a, b);   // {"mesh[dp].size: 2, 4", "stages[1].buckets[0][2]: 3, 4"}
//
// Fields are those of the plan's text (pipeline/plan_json.h). An entry of a
// list that has a name is named by it, others by number. Lists of different
// lengths are shown whole, and values longer than kDiffValueMax letters from
// shortly before where they differ. Empty where the plans are equal. Linear in
// the plans.

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
