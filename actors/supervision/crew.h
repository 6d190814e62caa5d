// The actors of a job that its supervisor sends messages to: ranks, writers of
// checkpoints and the reporter (spawn_crew.h spawns them).
//
//   if (crew->IsComplete()) crew->Monitor(self);
//   crew->SendToRanks(self, Grant{generation, /*until=*/100});
//   const Crew::Member lost = crew->MemberAt(down.source);
//   crew->EndRanks(self, end);           // EndRank
//
// Threads: the supervisor's strand, once it has got `begin`; until then the
// thread that fills it in.

#ifndef ACTORS_SUPERVISION_CREW_H_
#define ACTORS_SUPERVISION_CREW_H_

#include <memory>
#include <string>
#include <vector>

#include "actors/caf/caf.h"
#include "actors/protocol/messages.h"

namespace troupe::actors {

struct Crew {
  using Self = SupervisorActor::pointer;

  // The place of an actor in the crew, as failures name it.
  struct Member {
    int rank = -1;      // -1: no rank
    std::string actor;  // "rank", "checkpointer" or "observer"
  };

  // Whether all processes have reported their ranks.
  bool IsComplete() const;
  // Lets `self` get a down_msg when any of the actors ends. The crew must be
  // complete.
  void Monitor(Self self) const;
  // Returns which actor has this address. The observer's is the reporter's; an
  // unknown one counts as a checkpointer's.
  Member MemberAt(const caf::actor_addr& address) const;

  // Sends a message to each rank that is not null.
  template <typename Message>
  void SendToRanks(Self self, const Message& message) const {
    for (const RankActor& rank : ranks) {
      if (rank != nullptr) self->send(rank, message);
    }
  }
  // Ends the ranks and the checkpointers. FinishReports ends the reporter.
  void EndRanks(Self self, const EndRank& end) const;

  // Indexed by rank; null for a rank whose process has not reported it yet.
  std::vector<RankActor> ranks;
  // One for each process; the first makes folders and gives them their names.
  std::vector<CheckpointerActor> checkpointers;
  ReporterActor reporter;
  // Whether all processes have the job's folder of checkpoints.
  bool share_folder = true;
};
using CrewPtr = std::shared_ptr<Crew>;

}  // namespace troupe::actors

#endif  // ACTORS_SUPERVISION_CREW_H_
