// NCCL between ranks on GPUs, in programs that are built with it: what links
// comm/nccl:register (or, in tests, :register_emulated) brings it here.
//
//   NcclGroupOptions options;
//   options.name = "replicas";
//   options.ranks = {0, 2};                     // of the job
//   options.local = {0};                        // rank 2 lives elsewhere
//   TROUPE_ASSIGN_OR_RETURN(Group group, MakeNcclGroup(options, store));
//   group[0]->UseDevice(&work);                 // group[1] is null
//
// What such a group does is on nccl_group.h.
//
// Threads: SetNcclBackend() before main(), the rest in any.

#ifndef COMM_NCCL_NCCL_BACKEND_H_
#define COMM_NCCL_NCCL_BACKEND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "comm/local/local_group.h"
#include "comm/store.h"

namespace troupe::comm {

struct NcclGroupOptions {
  std::string name;  // for errors
  // The ranks of the job, each once; a communicator's rank is its place here.
  std::vector<int> ranks;
  // The places of those that live in this process.
  std::vector<int> local;
  // Which attempt of the job this is: a later one shares nothing with it.
  std::uint32_t generation = 0;
  // Limit on what a rank waits for its peers: to begin, and in a collective.
  absl::Duration timeout = absl::Minutes(5);
  // Collectives that a rank may be ahead of the others of its process.
  int in_flight_max = 256;
};

// A communicator for each rank of the group, null for those that live
// elsewhere. All processes that have one call it, in the same order of groups:
// the one that has place 0 leaves the group's id in `store`, and the others
// wait for it.
//   kUnimplemented: this program was built without NCCL.
//   kInvalidArgument: the options do not fit; names the field.
//   kDeadlineExceeded: nobody left an id.
absl::StatusOr<Group> MakeNcclGroup(const NcclGroupOptions& options,
                                    Store& store);

// Whether this program has NCCL.
bool HasNccl();

using NcclBackend = absl::StatusOr<Group> (*)(const NcclGroupOptions& options,
                                              Store& store);
// Once.
void SetNcclBackend(NcclBackend backend);

}  // namespace troupe::comm

#endif  // COMM_NCCL_NCCL_BACKEND_H_
