#include "tests/actors/tracing/trace_importer.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace troupe::actors {
namespace {

using Json = nlohmann::json;

class Importer {
 public:
  void Read(const Json& row) {
    const std::string phase = row.value("ph", "");
    if (phase == "M") {
      if (row["name"] == "thread_name") NameThread(row);
    } else if (phase == "B") {
      Begin(row);
    } else if (phase == "E") {
      End(row);
    } else if (phase == "s" || phase == "t" || phase == "f") {
      Arrow(phase, row);
    } else if (phase == "C") {
      trace_.counters[{row["pid"], row["name"]}].push_back(
          row["args"]["bytes"]);
    } else if (phase != "i") {
      Problem("of an unknown phase", row);
    }
  }

  ImportedTrace Finish() {
    for (const auto& [thread, open] : open_) {
      for (std::size_t slice : open) {
        absl::StrAppend(&trace_.problems, trace_.slices[slice].where,
                        " does not end\n");
      }
    }
    for (const auto& [key, slice] : arrows_) {
      absl::StrAppend(&trace_.problems, "an arrow from ",
                      trace_.slices[slice].where, " does not end\n");
    }
    return std::move(trace_);
  }

 private:
  void Problem(const std::string& what, const Json& row) {
    absl::StrAppend(&trace_.problems, what, ": ", row.dump(), "\n");
  }

  // Names a thread. Numbers of threads are those of the system, so ranks must
  // not share one.
  void NameThread(const Json& row) {
    const bool is_new =
        threads_
            .emplace(row["tid"], absl::StrCat(row["pid"].get<int>(), "/",
                                              std::string(row["args"]["name"])))
            .second;
    if (!is_new) Problem("a second name", row);
  }

  void Begin(const Json& row) {
    const int thread = row["tid"];
    ImportedSlice slice;
    slice.where = absl::StrCat(threads_[thread], "/", std::string(row["name"]));
    const Json args = row.value("args", Json::object());
    for (const auto& [what, value] : args.items()) {
      if (value.is_string()) slice.facts[what] = value;
    }
    slice.step = args.value("step", 0);
    slice.begin = row["ts"];
    open_[thread].push_back(trace_.slices.size());
    trace_.slices.push_back(slice);
  }

  // Ends the slice that began last.
  void End(const Json& row) {
    const int thread = row["tid"];
    std::vector<std::size_t>& open = open_[thread];
    const std::string where =
        absl::StrCat(threads_[thread], "/", std::string(row["name"]));
    if (open.empty() || trace_.slices[open.back()].where != where) {
      return Problem("ends in the wrong order", row);
    }
    trace_.slices[open.back()].end = row["ts"];
    open.pop_back();
  }

  void Arrow(const std::string& phase, const Json& row) {
    if (!row["id"].is_number()) return Problem("has no number", row);
    if (phase == "f" && row["bp"] != "e") {
      return Problem("binds to the next slice", row);
    }
    const std::vector<std::size_t>& open = open_[row["tid"]];
    if (open.empty()) return Problem("lies in no slice", row);
    const std::size_t here = open.back();
    const std::tuple<std::string, std::string, int> key = {
        row["cat"], row["name"], row["id"]};
    if (phase == "s") {
      if (!arrows_.emplace(key, here).second) Problem("begins again", row);
      return;
    }
    const auto from = arrows_.find(key);
    if (from == arrows_.end()) return Problem("has no beginning", row);
    ++trace_.arrows[{trace_.slices[from->second].where,
                     trace_.slices[here].where}];
    from->second = here;
    if (phase == "f") arrows_.erase(from);
  }

  ImportedTrace trace_;
  std::map<int, std::string> threads_;
  std::map<int, std::vector<std::size_t>> open_;  // open slices, by thread
  std::map<std::tuple<std::string, std::string, int>, std::size_t> arrows_;
};

}  // namespace

int ImportedTrace::CountSlices(const std::string& where) const {
  return static_cast<int>(std::count_if(
      slices.begin(), slices.end(),
      [&](const ImportedSlice& slice) { return slice.where == where; }));
}

ImportedTrace ImportTrace(const std::string& json) {
  const Json document = Json::parse(json);
  std::vector<Json> rows;
  for (const Json& row : document["traceEvents"]) {
    rows.push_back(row);
    if (row.value("ph", "") != "X") continue;
    // A slice as a whole: its begin, and its end.
    rows.back()["ph"] = "B";
    Json end = row;
    end["ph"] = "E";
    end["ts"] = row["ts"].get<double>() + row["dur"].get<double>();
    rows.push_back(std::move(end));
  }
  // Rows without a time, which name threads, come first; of slices that begin
  // at the same time the longest does; other rows of the same time keep the
  // order of the file.
  std::stable_sort(rows.begin(), rows.end(), [](const Json& a, const Json& b) {
    const double begin = a.value("ts", -1.0), other = b.value("ts", -1.0);
    if (begin != other) return begin < other;
    return a["ph"] == "B" && b["ph"] == "B" &&
           a.value("dur", 0.0) > b.value("dur", 0.0);
  });
  Importer importer;
  for (const Json& row : rows) importer.Read(row);
  return importer.Finish();
}

}  // namespace troupe::actors
