// NCCL between ranks on GPUs, for programs that link comm/nccl:register (or, in
// tests, :register_emulated).
//
//   NcclGroupOptions options;
//   options.name = "replicas";
//   options.ranks = {0, 2};                     // ranks of the job
//   options.local = {0};                        // rank 2 lives elsewhere
//   TROUPE_ASSIGN_OR_RETURN(Group group, MakeNcclGroup(options, store));
//   group[0]->UseDevice(&work);                 // group[1] is null
//
// nccl_group.h describes what such a group supports.
//
// Threads: SetNcclBackend() before main(), the rest any.

#ifndef COMM_NCCL_NCCL_BACKEND_H_
#define COMM_NCCL_NCCL_BACKEND_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "comm/local/local_group.h"
#include "comm/store.h"

namespace troupe::comm {

struct NcclGroupOptions {
  std::string name;  // for errors
  // Ranks of the job, each once; a communicator's rank is its index here.
  std::vector<int> ranks;
  // Indices of the ranks that live in this process.
  std::vector<int> local;
  // Number of the attempt to run the job: a later one shares no state with it.
  std::uint32_t generation = 0;
  // Store that is asked for the id by the devices' queues, before they make the
  // communicators, so that making the group waits for nobody. Asking it must
  // not block. Null: the maker waits for the id.
  std::shared_ptr<Store> later_id;
  // Limit on the wait for peers: at the start, and in a collective.
  absl::Duration timeout = absl::Minutes(5);
  // Clock for the timeout; null: the machine's.
  std::function<absl::Time()> now;
  // Number of collectives that a rank may be ahead of the others of its
  // process.
  int in_flight_max = 256;
};

// Makes a communicator for each rank of the group, null for those that live in
// other processes. All processes that have a rank call it, in the same order of
// groups: the one with index 0 publishes the group's id in `store`, and the
// others wait for it (later_id says where).
//   kUnimplemented: this program was built without NCCL.
//   kInvalidArgument: names the option that does not fit.
//   kDeadlineExceeded: no id was published.
absl::StatusOr<Group> MakeNcclGroup(const NcclGroupOptions& options,
                                    Store& store);

// Returns whether this program has NCCL.
bool HasNccl();

using NcclBackend = absl::StatusOr<Group> (*)(const NcclGroupOptions& options,
                                              Store& store);
// Sets the implementation; called once.
void SetNcclBackend(NcclBackend backend);

}  // namespace troupe::comm

#endif  // COMM_NCCL_NCCL_BACKEND_H_
