#include "troupe/internal/started_collectives.h"

#include <utility>

#include "base/status_error.h"

namespace troupe {
namespace {

// Number of chunks that the rank runs between two pieces of a backward.
constexpr int kChunksPerPiece = 8;

}  // namespace

void StartedCollectives::Start(const Place& of,
                               const std::shared_ptr<comm::Communicator>& group,
                               const comm::Collective& collective,
                               const comm::Event& after, bool on_device) {
  const base::Event done = hands_over_ && !on_device
                               ? strand_.HandOver(group, collective, after)
                               : base::OrThrow(group->Start(collective, after));
  in_flight_.push_back(
      {{of, done, nullptr}, group.get(), hands_over_ || on_device});
}

void StartedCollectives::Add(const Place& of, comm::Communicator& group,
                             const base::Event& done,
                             std::function<absl::Status()> then) {
  in_flight_.push_back(
      {{of, done, std::move(then)}, &group, /*handed_over=*/false});
}

std::optional<StartedCollectives::Ended> StartedCollectives::TakeEnded(
    std::size_t& next) {
  for (; next < in_flight_.size(); ++next) {
    const auto found = in_flight_.begin() + static_cast<std::ptrdiff_t>(next);
    if (!found->end.done.ready()) continue;
    Ended ended = std::move(found->end);
    in_flight_.erase(found);
    return ended;
  }
  return std::nullopt;
}

actors::StartedIn StartedCollectives::Oldest() const {
  const InFlight& oldest = in_flight_.front();
  return {oldest.group, oldest.end.done, !oldest.handed_over};
}

void StartedCollectives::Drive() {
  for (int i = 0; i < kChunksPerPiece && !in_flight_.empty(); ++i) {
    const InFlight& oldest = in_flight_.front();
    if (oldest.handed_over || !oldest.group->Progress()) break;
  }
}

void StartedCollectives::Abort(const absl::Status& why) {
  for (const InFlight& collective : in_flight_) {
    if (!collective.end.done.ready()) collective.group->Abort(why);
  }
}

}  // namespace troupe
