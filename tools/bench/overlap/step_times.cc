#include "tools/bench/overlap/step_times.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tools/bench/report.h"

namespace troupe::bench {
namespace {

using Json = nlohmann::json;

constexpr double kNever = std::numeric_limits<double>::infinity();

// Times of events in a step of rank 0, in microseconds.
struct Marks {
  double begin = kNever;         // begin of the first forward
  double last_begin = -kNever;   // the same on the last rank to begin
  double first_bucket = kNever;  // when the first bucket is ready
  double last_update = -kNever;  // end of the last update
};

// Returns the marks of each step, by its number from 1.
std::map<std::int64_t, Marks> MarksOf(const Json& events) {
  std::map<std::int64_t, Marks> steps;
  for (const Json& event : events) {
    if (!event.is_object() || !event.contains("args") ||
        !event["args"].contains("step")) {
      continue;
    }
    Marks& marks = steps[event["args"]["step"].get<std::int64_t>()];
    const std::string category = event.value("cat", "");
    const std::string phase = event.value("ph", "");
    const double time = event.value("ts", kNever);
    const bool begins = event.value("name", "") == "F0" && phase == "B";
    if (begins) marks.last_begin = std::max(marks.last_begin, time);
    if (event.value("pid", -1) != 0) continue;
    if (begins) {
      marks.begin = std::min(marks.begin, time);
    } else if (category == "bucket" && phase == "i") {
      marks.first_bucket = std::min(marks.first_bucket, time);
    } else if (category == "update" && phase == "E") {
      marks.last_update = std::max(marks.last_update, time);
    }
  }
  return steps;
}

}  // namespace

absl::StatusOr<StepTimes> ReadStepTimes(const std::string& path, int skip) {
  std::ifstream file(path);
  if (!file)
    return absl::NotFoundError(absl::StrCat(
        "there is no ", path, "; write it by trainer train --trace=", path));
  const Json json = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  const Json none = Json::array();
  const std::map<std::int64_t, Marks> steps = MarksOf(
      json.is_object() && json.contains("traceEvents") ? json["traceEvents"]
                                                       : none);
  std::vector<double> between, to_first_bucket;
  for (const auto& [step, marks] : steps) {
    const auto next = steps.find(step + 1);
    if (step <= skip || next == steps.end()) continue;
    between.push_back(next->second.begin - marks.begin);
    to_first_bucket.push_back(marks.first_bucket - marks.begin);
  }
  const auto first = steps.find(1);
  if (between.empty() || first == steps.end()) {
    return absl::OutOfRangeError(absl::StrCat(
        path, " has too few steps; set trace.steps to ", skip + 2, " or more"));
  }
  StepTimes times;
  times.step_ms = Median(between) / 1000;
  times.to_first_bucket_ms = Median(to_first_bucket) / 1000;
  times.first_step_ms =
      (first->second.last_update - first->second.last_begin) / 1000;
  return times;
}

}  // namespace troupe::bench
