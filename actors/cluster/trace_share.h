// Encodes the trace events of a process for the way to process 0, and estimates
// the offset between their clocks.
//
//   ClockOffset offset;
//   offset.Add(/*sent=*/100, /*answered=*/900, /*received=*/120);
//   offset.nanos();                     // 790: the other clock is ahead
//   for (std::string& part : EncodeEvents(events)) Send(std::move(part));
//   absl::StatusOr<std::vector<StampedEvent>> read = DecodeEvents(part);
//
// Threads: the functions from any; a ClockOffset from one at a time.

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

// Cristian's algorithm (1989): assumes that the answer was made half-way
// between sending and receiving, and keeps the sample in which these are
// closest together.
class ClockOffset {
 public:
  void Add(std::int64_t sent, std::int64_t answered, std::int64_t received) {
    const std::int64_t way = received - sent;
    if (way < 0 || (best_ >= 0 && way >= best_)) return;
    best_ = way;
    nanos_ = answered - (sent + way / 2);
  }
  // Returns the nanoseconds to add to a time of this process; 0 if there is no
  // sample.
  std::int64_t nanos() const { return nanos_; }

 private:
  std::int64_t best_ = -1;
  std::int64_t nanos_ = 0;
};

// Returns texts of up to 4096 events, some hundred kilobytes each.
std::vector<std::string> EncodeEvents(absl::Span<const StampedEvent> events);
// Decodes such a text, which may come from the network.
//   kInvalidArgument: EncodeEvents() did not make it.
absl::StatusOr<std::vector<StampedEvent>> DecodeEvents(absl::string_view text);

}  // namespace troupe::actors

#endif  // ACTORS_CLUSTER_TRACE_SHARE_H_
