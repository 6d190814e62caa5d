// What a process has traced, on its way to process 0; and how far apart their
// clocks are.
//
//   ClockOffset offset;
//   offset.Add(/*sent=*/100, /*answered=*/900, /*received=*/120);
//   offset.nanos();                                  // 790: theirs is ahead
//   for (std::string& part : EncodeEvents(events)) Send(std::move(part));
//   absl::StatusOr<std::vector<StampedEvent>> read = DecodeEvents(part);
//
// Threads: no state but the offset's; any.

#ifndef ACTORS_CLUSTER_TRACE_SHARE_H_
#define ACTORS_CLUSTER_TRACE_SHARE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "actors/tracing/trace.h"

namespace troupe::actors {

// Cristian's estimate (1989): the answer was made half-way between sending and
// receiving, known best where these are closest together.
class ClockOffset {
 public:
  void Add(std::int64_t sent, std::int64_t answered, std::int64_t received) {
    const std::int64_t way = received - sent;
    if (way < 0 || (best_ >= 0 && way >= best_)) return;
    best_ = way;
    nanos_ = answered - (sent + way / 2);
  }
  // What to add to a time of this process; 0 where nothing is known.
  std::int64_t nanos() const { return nanos_; }

 private:
  std::int64_t best_ = -1;
  std::int64_t nanos_ = 0;
};

// Texts of some hundred kilobytes each.
std::vector<std::string> EncodeEvents(absl::Span<const StampedEvent> events);
// kInvalidArgument: not such a text. It came over a wire.
absl::StatusOr<std::vector<StampedEvent>> DecodeEvents(absl::string_view text);

}  // namespace troupe::actors

#endif  // ACTORS_CLUSTER_TRACE_SHARE_H_
