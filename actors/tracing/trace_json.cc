#include "actors/tracing/trace_json.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "pipeline/table/action_rules.h"

namespace troupe::actors {
namespace {

using Json = nlohmann::json;

// Limit on the tracks of a rank. Perfetto takes the number of a track for a
// thread id of the system, so tracks of different ranks have different numbers.
constexpr int kTracksMax = 10000;
constexpr int kFirstCommTrack = 10;

int TrackOf(TraceTrack track) {
  switch (track) {
    case TraceTrack::kCompute:
      return 1;
    case TraceTrack::kLoader:
      return 2;
    case TraceTrack::kRank:
      return 3;
    case TraceTrack::kCheckpointer:
      return 4;
    case TraceTrack::kComm:
      return kFirstCommTrack;
  }
  return 0;
}

const char* NameOf(TraceTrack track) {
  switch (track) {
    case TraceTrack::kCompute:
      return "compute";
    case TraceTrack::kLoader:
      return "loader";
    case TraceTrack::kRank:
      return "rank";
    case TraceTrack::kCheckpointer:
      return "checkpointer";
    case TraceTrack::kComm:
      return "comm";
  }
  return "";
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
    case TraceKind::kGraph:
      return "graph";
    case TraceKind::kTransfer:
      return "transfer";
    case TraceKind::kLoad:
      return "load";
    case TraceKind::kEvaluation:
      return "evaluation";
    case TraceKind::kCheckpoint:
      return "checkpoint";
  }
  return "";
}

const char* PhaseOf(TracePhase phase) {
  switch (phase) {
    case TracePhase::kBegin:
      return "B";
    case TracePhase::kEnd:
      return "E";
    case TracePhase::kInstant:
      return "i";
  }
  return "";
}

// Returns an event's part in its arrow, by the format's letters: start ("s"), a
// point on the way ("t") or end ("f"). Null: no arrow. Arrows begin and end
// where slices begin, or at an instant within one.
const char* ArrowOf(const TraceEvent& event) {
  if (event.kind == TraceKind::kBucketReady) return "s";
  if (event.phase != TracePhase::kBegin) return nullptr;
  const pipeline::ActionRule& rule = pipeline::RuleOf(event.action);
  if (rule.role == pipeline::ActionRole::kSend) return "s";
  if (rule.role == pipeline::ActionRole::kReceive) return "f";
  if (!rule.Has(pipeline::kOfGradients)) return nullptr;
  return rule.Has(pipeline::kMakesParameters) ? "f" : "t";
}

// Returns the name of an event's arrow, the same at all its points.
std::string ArrowKey(const TraceEvent& event) {
  if (event.kind != TraceKind::kTransfer) {
    return absl::StrCat("bucket ", event.rank, " ", event.step, " ",
                        event.chunk, " ", event.bucket);
  }
  const bool forward = pipeline::IsOfForward(event.action);
  return absl::StrCat(forward ? "activation " : "gradient ", event.replica, " ",
                      event.step, " ", event.boundary, " ", event.micro_batch);
}

class Writer {
 public:
  void Add(const StampedEvent& stamped) {
    const TraceEvent& event = stamped.event;
    Json row = {{"name", event.name},
                {"cat", CategoryOf(event.kind)},
                {"ph", PhaseOf(event.phase)},
                {"pid", event.rank},
                {"tid", ThreadOf(event)},
                {"ts", stamped.micros},
                {"args", {{"step", event.step + 1}}}};
    if (event.phase == TracePhase::kInstant) row["s"] = "t";
    if (event.bucket >= 0) row["args"]["bucket"] = event.bucket;
    if (event.chunk > 0) row["args"]["chunk"] = event.chunk;
    if (event.micro_batch >= 0) {
      row["args"]["micro_batch"] = event.micro_batch;
    }
    const Json thread = row["tid"];
    rows_.push_back(std::move(row));
    if (const char* arrow = ArrowOf(event)) {
      AddArrow(stamped, arrow, thread);
    }
    AddMemory(event.rank, event.bytes, stamped.micros);
  }

  void Add(const TraceSlice& slice) {
    TraceEvent at;
    at.rank = slice.rank;
    Json row = {
        {"name", slice.name},   {"cat", slice.category}, {"ph", "X"},
        {"pid", slice.rank},    {"tid", ThreadOf(at)},   {"ts", slice.micros},
        {"dur", slice.duration}};
    for (const auto& [what, text] : slice.facts) row["args"][what] = text;
    rows_.push_back(std::move(row));
    AddMemory(slice.rank, slice.bytes, slice.micros + slice.duration);
  }

  Json TakeRows() { return std::move(rows_); }

 private:
  // Adds the counter "memory" if its value is known and has changed: it holds
  // until the next one.
  void AddMemory(int rank, std::int64_t bytes, double micros) {
    if (bytes < 0) return;
    const auto [last, is_first] = memory_.emplace(rank, bytes);
    if (!is_first && last->second == bytes) return;
    last->second = bytes;
    rows_.push_back({{"name", "memory"},
                     {"cat", "memory"},
                     {"ph", "C"},
                     {"pid", rank},
                     {"ts", micros},
                     {"args", {{"bytes", bytes}}}});
  }

  // Adds one point of an arrow. It binds to the slice that encloses it ("bp").
  void AddArrow(const StampedEvent& stamped, const char* arrow,
                const Json& thread) {
    const TraceEvent& event = stamped.event;
    const char* name =
        event.kind == TraceKind::kTransfer ? "transfer" : "bucket";
    const int next = static_cast<int>(arrows_.size()) + 1;
    const int id = arrows_.emplace(ArrowKey(event), next).first->second;
    rows_.push_back({{"name", name},
                     {"cat", name},
                     {"ph", arrow},
                     {"bp", "e"},
                     {"id", id},
                     {"pid", event.rank},
                     {"tid", thread},
                     {"ts", stamped.micros}});
  }

  // Returns the number of the event's track, and names the track at its first
  // event. Reductions that overlap have a track each.
  int ThreadOf(const TraceEvent& event) {
    int track = TrackOf(event.track);
    int lane = 0;
    if (event.track == TraceTrack::kComm) {
      lane = LaneOf(event);
      track += lane;
    }
    const int thread = event.rank * kTracksMax + track;
    if (ranks_.insert(event.rank).second) {
      Name(event.rank, 0, "process_name", absl::StrCat("rank ", event.rank));
    }
    if (threads_.insert(thread).second) {
      Name(event.rank, thread, "thread_name",
           lane == 0 ? NameOf(event.track)
                     : absl::StrCat(NameOf(event.track), " ", lane + 1));
    }
    return thread;
  }

  // Returns the lane of the event's reduction; for a reduction that begins, the
  // first free one.
  int LaneOf(const TraceEvent& event) {
    std::vector<std::string>& lanes = lanes_[event.rank];
    const bool begins = event.phase == TracePhase::kBegin;
    const std::string key = absl::StrCat(event.step, " ", event.name);
    auto lane = std::find(lanes.begin(), lanes.end(), begins ? "" : key);
    if (lane == lanes.end()) lane = lanes.insert(lane, "");
    *lane = begins ? key : "";
    return std::min(static_cast<int>(lane - lanes.begin()),
                    kTracksMax - kFirstCommTrack - 1);
  }

  void Name(int rank, int thread, const char* what, const std::string& name) {
    rows_.push_back({{"ph", "M"},
                     {"pid", rank},
                     {"tid", thread},
                     {"name", what},
                     {"args", {{"name", name}}}});
  }

  Json rows_ = Json::array();
  std::set<int> ranks_, threads_;  // ranks and tracks that have been named
  // For each rank: the reduction in each of its lanes, "" if it is free.
  std::map<int, std::vector<std::string>> lanes_;
  std::map<std::string, int> arrows_;   // ids of arrows, by key
  std::map<int, std::int64_t> memory_;  // last value of "memory", by rank
};

}  // namespace

std::string TraceJson(const std::vector<StampedEvent>& events,
                      std::int64_t dropped,
                      const std::vector<TraceSlice>& slices) {
  Writer writer;
  // Both are in the order of time, so that the counter "memory" is, too.
  auto slice = slices.begin();
  for (const StampedEvent& event : events) {
    for (; slice != slices.end() &&
           slice->micros + slice->duration <= event.micros;
         ++slice) {
      writer.Add(*slice);
    }
    writer.Add(event);
  }
  for (; slice != slices.end(); ++slice) writer.Add(*slice);
  Json document = {{"traceEvents", writer.TakeRows()},
                   {"displayTimeUnit", "ms"},
                   {"otherData", {{"dropped_events", dropped}}}};
  return document.dump();
}

}  // namespace troupe::actors
