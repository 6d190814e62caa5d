#include "troupe/profile/op_profile.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "actors/tracing/trace_json.h"
#include "base/format_bytes.h"

namespace troupe {
namespace {

constexpr double kMicrosPerMilli = 1000;

// Value by which rows are sorted.
double RankOf(const OperatorTime& op, SortBy by) {
  switch (by) {
    case SortBy::kSelfTime:
      return op.self_ms;
    case SortBy::kTotalTime:
      return op.total_ms;
    case SortBy::kCalls:
      return static_cast<double>(op.calls);
    case SortBy::kMemory:
      return static_cast<double>(op.grown);
  }
  return 0;
}

std::string Percent(double part, double whole) {
  return absl::StrFormat("%.1f%%", whole > 0 ? 100 * part / whole : 0);
}

// Returns one row of the table, without trailing blanks.
std::string Row(absl::string_view name, absl::string_view calls,
                absl::string_view self, absl::string_view share,
                absl::string_view total, absl::string_view average,
                absl::string_view memory, absl::string_view where) {
  std::string row =
      absl::StrFormat("%-26s %8s %10s %7s %10s %10s %10s  %s", name, calls,
                      self, share, total, average, memory, where);
  row.erase(row.find_last_not_of(' ') + 1);
  return absl::StrCat(row, "\n");
}

std::string SignedBytes(std::int64_t bytes) {
  return bytes < 0 ? absl::StrCat("-", base::FormatBytes(-bytes))
                   : base::FormatBytes(bytes);
}

}  // namespace

std::vector<OperatorTime> OpProfile::KeyAverages(
    const TableOptions& options) const {
  std::map<std::tuple<std::string, int, int>, OperatorTime> sums;
  for (const OpEvent& op : ops) {
    OperatorTime& sum = sums[{op.name, options.by_module ? op.module : -1,
                              options.by_shapes ? op.shapes : -1}];
    ++sum.calls;
    sum.self_ms += op.self / kMicrosPerMilli;
    sum.total_ms += op.total / kMicrosPerMilli;
    sum.grown += op.grown;
  }
  std::vector<OperatorTime> all;
  for (auto& [key, sum] : sums) {
    sum.name = std::get<0>(key);
    if (options.by_module) sum.module = modules[std::get<1>(key)];
    if (options.by_shapes) sum.shapes = shapes[std::get<2>(key)];
    all.push_back(std::move(sum));
  }
  std::stable_sort(all.begin(), all.end(),
                   [&](const OperatorTime& a, const OperatorTime& b) {
                     return RankOf(a, options.sort_by) >
                            RankOf(b, options.sort_by);
                   });
  return all;
}

std::string OpProfile::Table(const TableOptions& options) const {
  const std::vector<OperatorTime> all = KeyAverages(options);
  const double whole = micros / kMicrosPerMilli;
  double in_ops = 0;
  for (const OperatorTime& op : all) in_ops += op.self_ms;
  std::string text = absl::StrFormat(
      "rank %d: %d step%s in %.1f ms, %s of it in operators\n\n", rank, steps,
      steps == 1 ? "" : "s", whole, Percent(in_ops, whole));
  absl::StrAppend(
      &text, Row("operator", "calls", "self ms", "self", "total ms", "avg us",
                 "memory",
                 options.by_module && options.by_shapes ? "module, shapes"
                 : options.by_module                    ? "module"
                 : options.by_shapes                    ? "shapes"
                                                        : ""));
  OperatorTime rest;
  int left = options.row_limit, hidden = 0;
  for (const OperatorTime& op : all) {
    if (left-- <= 0) {
      ++hidden;
      rest.calls += op.calls;
      rest.self_ms += op.self_ms;
      continue;
    }
    absl::StrAppend(
        &text,
        Row(op.name, absl::StrCat(op.calls),
            absl::StrFormat("%.3f", op.self_ms), Percent(op.self_ms, whole),
            absl::StrFormat("%.3f", op.total_ms),
            absl::StrFormat("%.1f", op.total_ms * kMicrosPerMilli /
                                        static_cast<double>(op.calls)),
            SignedBytes(op.grown),
            absl::StrCat(op.module,
                         !op.module.empty() && !op.shapes.empty() ? "  " : "",
                         op.shapes)));
  }
  if (hidden > 0) {
    absl::StrAppend(&text,
                    Row(absl::StrCat(hidden, " more"), absl::StrCat(rest.calls),
                        absl::StrFormat("%.3f", rest.self_ms),
                        Percent(rest.self_ms, whole), "", "", "", ""));
  }
  absl::StrAppend(&text, Row("outside operators", "",
                             absl::StrFormat("%.3f", whole - in_ops),
                             Percent(whole - in_ops, whole), "", "", "", ""));
  return text;
}

std::string OpProfile::ToJson() const {
  std::vector<actors::TraceSlice> slices = ranges;
  for (const OpEvent& op : ops) {
    actors::TraceSlice& slice = slices.emplace_back();
    slice.rank = rank;
    slice.category = "operator";
    slice.name = op.name;
    slice.micros = op.micros;
    slice.duration = op.total;
    slice.bytes = op.bytes;
    if (op.module != 0) slice.facts.push_back({"module", modules[op.module]});
    if (op.shapes != 0) slice.facts.push_back({"shapes", shapes[op.shapes]});
  }
  std::stable_sort(slices.begin(), slices.end(),
                   [](const auto& a, const auto& b) {
                     return a.micros + a.duration < b.micros + b.duration;
                   });
  return actors::TraceJson(events, dropped, slices);
}

}  // namespace troupe
