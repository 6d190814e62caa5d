#include "actors/trace.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "nlohmann/json.hpp"

namespace troupe::actors {
namespace {

using Json = nlohmann::json;

// Track ids within a rank's process; Perfetto sorts by them.
constexpr int kComputeTid = 1;
constexpr int kCommTid = 2;
constexpr int kLoaderTid = 3;

int TidOf(const TraceEvent& event) {
  switch (event.track) {
    case TraceTrack::kCompute:
      return kComputeTid;
    case TraceTrack::kComm:
      return kCommTid;
    case TraceTrack::kLoader:
      return kLoaderTid;
  }
  return 0;
}

Json Metadata(int pid, int tid, const char* what, const std::string& name) {
  return {{"ph", "M"},
          {"pid", pid},
          {"tid", tid},
          {"name", what},
          {"args", {{"name", name}}}};
}

const char* CategoryOf(TraceKind kind) {
  switch (kind) {
    case TraceKind::kAction:
      return "action";
    case TraceKind::kCollective:
      return "collective";
    case TraceKind::kGradientComplete:
      return "gradient";
    case TraceKind::kBucketReady:
      return "bucket";
    case TraceKind::kUpdate:
      return "update";
    case TraceKind::kLoad:
      return "load";
  }
  return "";
}

// The same bucket of the same step has one arrow per rank.
std::string FlowId(const TraceEvent& event) {
  return absl::StrCat("r", event.rank, "s", event.step, "c", event.chunk, "b",
                      event.bucket);
}

}  // namespace

ChromeTrace::ChromeTrace(const Options& options)
    : options_(options), start_(absl::Now()) {}

bool ChromeTrace::Wants(std::int64_t step) const {
  std::int64_t start = run_start_.load(std::memory_order_relaxed);
  if (start < 0 && run_start_.compare_exchange_strong(start, step)) {
    start = step;
  }
  const std::int64_t of_run = step - start + 1;
  return of_run >= options_.first_step &&
         of_run < options_.first_step + options_.steps;
}

bool ChromeTrace::IsEmpty() const {
  absl::MutexLock lock(&mutex_);
  return events_.empty();
}

void ChromeTrace::Record(const TraceEvent& event) {
  const double micros = absl::ToDoubleMicroseconds(absl::Now() - start_);
  absl::MutexLock lock(&mutex_);
  if (static_cast<std::int64_t>(events_.size()) >= options_.events_max) {
    ++dropped_;
    return;
  }
  events_.push_back({event, micros});
}

std::string ChromeTrace::ToJson() const {
  absl::MutexLock lock(&mutex_);
  Json events = Json::array();
  std::set<int> ranks;
  for (const auto& [event, micros] : events_) {
    if (ranks.insert(event.rank).second) {
      events.push_back(Metadata(event.rank, 0, "process_name",
                                absl::StrCat("rank ", event.rank)));
      events.push_back(
          Metadata(event.rank, kComputeTid, "thread_name", "compute"));
      events.push_back(Metadata(event.rank, kCommTid, "thread_name", "comm"));
      events.push_back(
          Metadata(event.rank, kLoaderTid, "thread_name", "loader"));
    }
    // Reductions overlap each other on their track: async slices.
    const bool async = event.kind == TraceKind::kCollective;
    Json row = {{"name", event.name}, {"cat", CategoryOf(event.kind)},
                {"pid", event.rank},  {"tid", TidOf(event)},
                {"ts", micros},       {"args", {{"step", event.step + 1}}}};
    if (event.bucket >= 0) row["args"]["bucket"] = event.bucket;
    if (event.chunk > 0) row["args"]["chunk"] = event.chunk;
    switch (event.phase) {
      case TracePhase::kBegin:
        row["ph"] = async ? "b" : "B";
        break;
      case TracePhase::kEnd:
        row["ph"] = async ? "e" : "E";
        break;
      case TracePhase::kInstant:
        row["ph"] = "i";
        row["s"] = "t";
        break;
    }
    if (async) row["id"] = absl::StrCat(FlowId(event), event.name);
    events.push_back(row);
    // An arrow from the bucket's readiness to the end of its reduction.
    const bool from = event.kind == TraceKind::kBucketReady;
    const bool to = event.kind == TraceKind::kCollective && event.bucket >= 0 &&
                    event.phase == TracePhase::kEnd;
    if (from || to) {
      events.push_back({{"ph", from ? "s" : "f"},
                        {"bp", "e"},
                        {"name", "bucket"},
                        {"cat", "bucket"},
                        {"id", FlowId(event)},
                        {"pid", event.rank},
                        {"tid", TidOf(event)},
                        {"ts", micros}});
    }
  }
  Json document = {{"traceEvents", std::move(events)},
                   {"displayTimeUnit", "ms"},
                   {"otherData", {{"dropped_events", dropped_}}}};
  return document.dump();
}

absl::Status ChromeTrace::WriteFile(base::FileSystem& files,
                                    const std::string& path) const {
  return base::WriteWholeFile(files, path, ToJson());
}

}  // namespace troupe::actors
