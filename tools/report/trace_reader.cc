#include "tools/report/trace_reader.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nlohmann/json.hpp"
#include "tools/report/json_text.h"

namespace troupe::tools {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kStepMax = std::int64_t{1} << 53;
constexpr std::int64_t kThreadMax = kTraceRanksMax * 10'000;
constexpr std::size_t kNameMax = 64;
// Depth of a row: inside a list inside an object.
constexpr int kRowDepth = 2;

class TraceBuilder {
 public:
  absl::Status Add(const Json& row) {
    const auto phase = row.find("ph");
    if (phase == row.end() || !phase->is_string()) return absl::OkStatus();
    const std::string& letter = phase->get_ref<const std::string&>();
    if (letter == "B") return Begin(row);
    if (letter == "E") return End(row);
    if (letter == "C") return Count(row);
    return absl::OkStatus();
  }

  RunTrace Finish() {
    const auto by_begin = [](const Bar& a, const Bar& b) {
      return a.begin < b.begin;
    };
    std::stable_sort(trace_.bars.begin(), trace_.bars.end(), by_begin);
    const auto by_time = [](const MemorySample& a, const MemorySample& b) {
      return a.at < b.at;
    };
    std::stable_sort(trace_.memory.begin(), trace_.memory.end(), by_time);
    const double first = trace_.bars.empty() ? 0 : trace_.bars[0].begin;
    for (Bar& bar : trace_.bars) {
      bar.begin -= first;
      bar.end -= first;
    }
    for (MemorySample& sample : trace_.memory) sample.at -= first;
    return std::move(trace_);
  }

 private:
  // A bar that has not ended yet, with its name.
  struct Open {
    Bar bar;
    std::string name;
  };

  absl::Status Begin(const Json& row) {
    TROUPE_ASSIGN_OR_RETURN(const std::string category,
                            TextAt(row, "cat", kNameMax));
    const bool is_load = category == "load", is_graph = category == "graph";
    const bool is_action = category == "action" || category == "collective" ||
                           category == "update" || category == "transfer";
    if (!is_load && !is_graph && !is_action) return absl::OkStatus();
    Open open;
    TROUPE_ASSIGN_OR_RETURN(open.name, TextAt(row, "name", kNameMax));
    Bar& bar = open.bar;
    TROUPE_ASSIGN_OR_RETURN(bar.begin, NumberAt(row, "ts"));
    TROUPE_ASSIGN_OR_RETURN(bar.rank,
                            IntegerAt(row, "pid", 0, kTraceRanksMax - 1));
    TROUPE_ASSIGN_OR_RETURN(const std::int64_t thread,
                            IntegerAt(row, "tid", 0, kThreadMax));
    const auto more = row.find("args");
    if (more == row.end() || !more->is_object()) {
      return WrongPart("args", "is missing");
    }
    TROUPE_ASSIGN_OR_RETURN(bar.step, IntegerAt(*more, "step", 0, kStepMax));
    bar.is_graph = is_graph;
    bar.track = is_load                    ? BarTrack::kLoad
                : category == "collective" ? BarTrack::kComm
                                           : BarTrack::kCompute;
    if (is_action) {
      const auto table = pipeline::ParseTable(open.name);
      if (!table.ok() || table->actions.size() != 1) {
        return WrongPart("name", "is no action");
      }
      const pipeline::Action& action = table->actions[0];
      bar.kind = action.kind;
      bar.chunk = action.chunk;
      bar.index = action.index;
    }
    open_[thread].push_back(std::move(open));
    return absl::OkStatus();
  }

  absl::Status End(const Json& row) {
    TROUPE_ASSIGN_OR_RETURN(const std::int64_t thread,
                            IntegerAt(row, "tid", 0, kThreadMax));
    TROUPE_ASSIGN_OR_RETURN(const std::string name,
                            TextAt(row, "name", kNameMax));
    std::vector<Open>& open = open_[thread];
    if (open.empty() || open.back().name != name) return absl::OkStatus();
    Bar bar = open.back().bar;
    open.pop_back();
    TROUPE_ASSIGN_OR_RETURN(bar.end, NumberAt(row, "ts"));
    if (bar.end < bar.begin) {
      return WrongPart("ts", "is before the bar's begin");
    }
    if (trace_.bars.size() == kTraceBarsMax) {
      return WrongPart("it",
                       absl::StrCat("has more than ", kTraceBarsMax, " bars"));
    }
    trace_.bars.push_back(bar);
    return absl::OkStatus();
  }

  absl::Status Count(const Json& row) {
    const auto name = row.find("name");
    if (name == row.end() || *name != "memory") return absl::OkStatus();
    MemorySample sample;
    TROUPE_ASSIGN_OR_RETURN(sample.rank,
                            IntegerAt(row, "pid", 0, kTraceRanksMax - 1));
    TROUPE_ASSIGN_OR_RETURN(sample.at, NumberAt(row, "ts"));
    const auto values = row.find("args");
    if (values == row.end() || !values->is_object()) {
      return WrongPart("args", "is missing");
    }
    TROUPE_ASSIGN_OR_RETURN(
        sample.bytes, IntegerAt(*values, "bytes", 0,
                                std::numeric_limits<std::int64_t>::max()));
    if (trace_.memory.size() == 2 * kTraceBarsMax) {
      return WrongPart("it", absl::StrCat("has more than ", 2 * kTraceBarsMax,
                                          " values of memory"));
    }
    trace_.memory.push_back(sample);
    return absl::OkStatus();
  }

  RunTrace trace_;
  std::map<std::int64_t, std::vector<Open>> open_;  // key: thread
};

// Parser callback: passes each row to the builder and drops it from the JSON.
class RowFilter {
 public:
  bool operator()(int depth, Json::parse_event_t event, Json& value) {
    if (event != Json::parse_event_t::object_end || depth != kRowDepth) {
      return true;
    }
    ++rows_;
    if (status_.ok()) Keep(builder_.Add(value));
    return false;
  }

  const absl::Status& status() const { return status_; }
  RunTrace Finish() { return builder_.Finish(); }

 private:
  void Keep(const absl::Status& status) {
    if (status.ok() || !status_.ok()) return;
    status_ = WrongPart(absl::StrCat("event ", rows_, ":"), status.message());
  }

  TraceBuilder builder_;
  absl::Status status_;
  std::int64_t rows_ = 0;
};

}  // namespace

absl::StatusOr<RunTrace> ReadTrace(absl::string_view text) {
  RowFilter filter;
  TROUPE_ASSIGN_OR_RETURN(const Json rest,
                          ParseJson(text, /*first_line=*/1, std::ref(filter)));
  TROUPE_RETURN_IF_ERROR(filter.status());
  if (!rest.is_object() || rest.find("traceEvents") == rest.end()) {
    return WrongPart("line 1", "is no timeline: traceEvents is missing");
  }
  RunTrace trace = filter.Finish();
  const auto other = rest.find("otherData");
  if (other != rest.end() && other->is_object()) {
    const auto dropped = IntegerAt(*other, "dropped_events", 0, kStepMax);
    if (dropped.ok()) trace.dropped = *dropped;
  }
  return trace;
}

}  // namespace troupe::tools
