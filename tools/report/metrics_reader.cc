#include "tools/report/metrics_reader.h"

#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nlohmann/json.hpp"
#include "tools/report/json_text.h"

namespace troupe::tools {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kStepMax = std::int64_t{1} << 53;
constexpr std::size_t kKindMax = 64;

absl::StatusOr<MetricRow> RowOf(const Json& json) {
  MetricRow row;
  TROUPE_ASSIGN_OR_RETURN(row.step, IntegerAt(json, "step", 0, kStepMax));
  for (const MetricField& field : kMetricFields) {
    const auto found = json.find(field.name);
    if (found == json.end() || found->is_null()) continue;
    TROUPE_ASSIGN_OR_RETURN(row.*field.field, NumberAt(json, field.name));
  }
  return row;
}

using RowsByStep = std::map<std::int64_t, MetricRow>;

absl::Status AddLine(absl::string_view line, std::int64_t number,
                     RowsByStep& train, RowsByStep& evaluation) {
  TROUPE_ASSIGN_OR_RETURN(const Json json, ParseJson(line, number));
  const std::string place = absl::StrCat("line ", number);
  if (!json.is_object()) return WrongPart(place, "is no JSON object");
  const auto add = [&]() -> absl::Status {
    TROUPE_ASSIGN_OR_RETURN(const std::string kind,
                            TextAt(json, "kind", kKindMax));
    if (kind != "train" && kind != "evaluation") return absl::OkStatus();
    TROUPE_ASSIGN_OR_RETURN(const MetricRow row, RowOf(json));
    (kind == "train" ? train : evaluation)[row.step] = row;
    return absl::OkStatus();
  };
  const absl::Status status = add();
  if (status.ok()) return status;
  return WrongPart(place + ":", status.message());
}

std::vector<MetricRow> RowsOf(const RowsByStep& by_step) {
  std::vector<MetricRow> rows;
  for (const auto& [step, row] : by_step) rows.push_back(row);
  return rows;
}

}  // namespace

absl::StatusOr<RunMetrics> ReadMetrics(absl::string_view text) {
  RowsByStep train, evaluation;
  std::int64_t number = 0;
  while (true) {
    const std::size_t end = text.find('\n');
    if (end == absl::string_view::npos) break;
    ++number;
    const absl::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    TROUPE_RETURN_IF_ERROR(AddLine(line, number, train, evaluation));
  }
  return RunMetrics{RowsOf(train), RowsOf(evaluation)};
}

}  // namespace troupe::tools
