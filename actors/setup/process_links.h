// The place of a process among those of its job, and its links to the others.
//
//   ProcessLinks links;                      // this is the only process
//   links.number = 1;
//   links.roster = std::make_shared<const Roster>(members);
//   for (int rank = links.first_rank(); rank < links.end_rank(); ++rank) {
//     Start(rank);                           // a rank of this process
//   }
//
// The fabric is set when the processes are connected, after the roster.
//
// Threads: constant from then on, so any number may read.

#ifndef ACTORS_SETUP_PROCESS_LINKS_H_
#define ACTORS_SETUP_PROCESS_LINKS_H_

#include <memory>
#include <string>

#include "actors/setup/roster.h"
#include "comm/fabric.h"
#include "comm/shm/shared_memory.h"

namespace troupe::actors {

struct ProcessLinks {
  int number = 0;  // number of this process
  // All processes of the job, and the links to them; null if this is the only
  // one.
  std::shared_ptr<const Roster> roster;
  std::shared_ptr<comm::Fabric> fabric;
  // Memory of tensors that the ranks here reduce with other processes of the
  // host; null: there are none.
  std::shared_ptr<comm::SharedMemory> shared_memory;
  std::string transports;  // JobInfo::transports

  // Whether the job has no other process.
  bool is_only() const { return roster == nullptr; }
  // The ranks of this process are [first_rank(), end_rank()), unless it is the
  // only one.
  int first_rank() const { return roster->FirstRankOf(number); }
  int end_rank() const { return roster->FirstRankOf(number + 1); }
};

}  // namespace troupe::actors

#endif  // ACTORS_SETUP_PROCESS_LINKS_H_
