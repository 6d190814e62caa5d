// A profile of a rank: each call of an operator with its module, shapes and
// memory, the parts that the program has named, and the events of its models'
// step engines; as a table, and as a file for a viewer.
//
//   OpProfile profile = recorder.Finish();      // troupe/profile/op_recorder.h
//   for (const OperatorTime& op : profile.KeyAverages()) {
//     absl::PrintF("%s %d\n", op.name, op.calls);
//   }
//   std::string text = profile.Table({SortBy::kSelfTime, /*row_limit=*/10});
//   std::string json = profile.ToJson();        // for ui.perfetto.dev
//
// Times are those of the host. An operator's total time includes the operators
// that it calls, its self time does not.

#ifndef TROUPE_PROFILE_OP_PROFILE_H_
#define TROUPE_PROFILE_OP_PROFILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "actors/tracing/trace.h"

namespace troupe {

// One call of an operator.
struct OpEvent {
  const char* name = "";  // "LinearForward"
  int module = 0;         // index in OpProfile::modules
  int shapes = 0;         // index in OpProfile::shapes
  double micros = 0;      // begin, since the profile began
  double total = 0;       // microseconds
  double self = 0;        // microseconds
  // Bytes of the rank's tensors at its end, and by how much they have grown
  // since the operator before it: its outputs, less what was released.
  std::int64_t bytes = 0;
  std::int64_t grown = 0;
};

// The calls of an operator, added up.
struct OperatorTime {
  std::string name;
  std::string module;  // empty if calls are not told apart by it
  std::string shapes;  // the same
  std::int64_t calls = 0;
  double self_ms = 0;
  double total_ms = 0;
  std::int64_t grown = 0;  // see OpEvent
};

enum class SortBy { kSelfTime, kTotalTime, kCalls, kMemory };

struct TableOptions {
  SortBy sort_by = SortBy::kSelfTime;
  int row_limit = 10;      // the rest is one line
  bool by_module = false;  // a row for each module's calls of an operator
  bool by_shapes = false;  // a row for each list of shapes
};

struct OpProfile {
  // Returns the operators, in the order of options.sort_by, the largest first;
  // equal ones by name. All of them: `row_limit` does not count.
  std::vector<OperatorTime> KeyAverages(const TableOptions& options = {}) const;
  // Returns a table of them, to be printed.
  std::string Table(const TableOptions& options = {}) const;
  // Returns a timeline in Chrome's trace event format (trace_json.h).
  std::string ToJson() const;

  int rank = 0;
  std::int64_t steps = 0;
  double micros = 0;  // duration of the profile
  std::vector<std::string> modules = {""};
  std::vector<std::string> shapes = {""};  // "f32[20, 10] f32[5, 10]"
  // Both are in the order of their ends; ranges have names of the program's.
  std::vector<OpEvent> ops;
  std::vector<actors::TraceSlice> ranges;
  std::vector<actors::StampedEvent> events;
  std::int64_t dropped = 0;  // events beyond the limit
};

}  // namespace troupe

#endif  // TROUPE_PROFILE_OP_PROFILE_H_
