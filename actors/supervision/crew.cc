#include "actors/supervision/crew.h"

#include <algorithm>

namespace troupe::actors {

bool Crew::IsComplete() const {
  return std::count(ranks.begin(), ranks.end(), nullptr) == 0;
}

void Crew::Monitor(Self self) const {
  for (const RankActor& rank : ranks) self->monitor(rank);
  for (const CheckpointerActor& each : checkpointers) self->monitor(each);
  self->monitor(reporter);
}

Crew::Member Crew::MemberAt(const caf::actor_addr& address) const {
  const auto rank = std::find(ranks.begin(), ranks.end(), address);
  if (rank != ranks.end()) {
    return {static_cast<int>(rank - ranks.begin()), "rank"};
  }
  return {-1, address == reporter ? "observer" : "checkpointer"};
}

void Crew::EndRanks(Self self, const EndRank& end) const {
  // Actors of other processes are null if the crew never was complete.
  SendToRanks(self, end);
  for (const CheckpointerActor& each : checkpointers) {
    if (each != nullptr) {
      caf::anon_send_exit(each, caf::exit_reason::user_shutdown);
    }
  }
}

}  // namespace troupe::actors
