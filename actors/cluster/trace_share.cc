#include "actors/cluster/trace_share.h"

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "base/check.h"
#include "pipeline/table/action_rules.h"

namespace troupe::actors {
namespace {

constexpr std::size_t kEventsPerText = 4096;
constexpr std::size_t kNameMax = 1024;

// Form of an event on the wire, in host byte order; its name follows.
struct WireEvent {
  double micros;
  std::int64_t step, bytes;
  std::int32_t rank, chunk, bucket, micro_batch, boundary, replica;
  std::uint8_t track, kind, phase, action;
  std::uint32_t name_bytes;
};
static_assert(sizeof(WireEvent) == 56);
static_assert(std::is_trivially_copyable_v<WireEvent>);

void Append(const StampedEvent& stamped, std::string* text) {
  const TraceEvent& event = stamped.event;
  WireEvent wire = {};
  wire.micros = stamped.micros;
  wire.step = event.step;
  wire.bytes = event.bytes;
  wire.rank = event.rank;
  wire.chunk = event.chunk;
  wire.bucket = event.bucket;
  wire.micro_batch = event.micro_batch;
  wire.boundary = event.boundary;
  wire.replica = event.replica;
  wire.track = static_cast<std::uint8_t>(event.track);
  wire.kind = static_cast<std::uint8_t>(event.kind);
  wire.phase = static_cast<std::uint8_t>(event.phase);
  wire.action = static_cast<std::uint8_t>(event.action);
  const std::string name = event.name.substr(0, kNameMax);
  wire.name_bytes = static_cast<std::uint32_t>(name.size());
  text->append(reinterpret_cast<const char*>(&wire), sizeof(wire));
  text->append(name);
}

absl::Status NoEvents() {
  return absl::InvalidArgumentError("these are no events of a trace");
}

// Decodes the first event of the text and removes it.
absl::StatusOr<StampedEvent> TakeEvent(absl::string_view* text) {
  WireEvent wire;
  if (text->size() < sizeof(wire)) return NoEvents();
  std::memcpy(&wire, text->data(), sizeof(wire));
  text->remove_prefix(sizeof(wire));
  if (wire.name_bytes > kNameMax || wire.name_bytes > text->size() ||
      wire.track > static_cast<int>(TraceTrack::kCheckpointer) ||
      wire.kind > static_cast<int>(TraceKind::kCheckpoint) ||
      wire.phase > static_cast<int>(TracePhase::kInstant) ||
      wire.action >= static_cast<int>(pipeline::ActionRules().size())) {
    return NoEvents();
  }
  StampedEvent stamped;
  stamped.micros = wire.micros;
  TraceEvent& event = stamped.event;
  event.step = wire.step;
  event.bytes = wire.bytes;
  event.rank = wire.rank;
  event.chunk = wire.chunk;
  event.bucket = wire.bucket;
  event.micro_batch = wire.micro_batch;
  event.boundary = wire.boundary;
  event.replica = wire.replica;
  event.track = static_cast<TraceTrack>(wire.track);
  event.kind = static_cast<TraceKind>(wire.kind);
  event.phase = static_cast<TracePhase>(wire.phase);
  event.action = static_cast<pipeline::ActionKind>(wire.action);
  event.name = std::string(text->substr(0, wire.name_bytes));
  text->remove_prefix(wire.name_bytes);
  return stamped;
}

}  // namespace

std::vector<std::string> EncodeEvents(absl::Span<const StampedEvent> events) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (i % kEventsPerText == 0) texts.emplace_back();
    Append(events[i], &texts.back());
  }
  return texts;
}

absl::StatusOr<std::vector<StampedEvent>> DecodeEvents(absl::string_view text) {
  std::vector<StampedEvent> events;
  while (!text.empty()) {
    TROUPE_ASSIGN_OR_RETURN(StampedEvent event, TakeEvent(&text));
    events.push_back(std::move(event));
  }
  return events;
}

}  // namespace troupe::actors
