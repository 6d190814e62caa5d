// The groups of a program, made while it runs, by whichever member asks first
// (torch.distributed.new_group).
//
//   ProgramGroups groups(/*ranks=*/4, LocalGroupsBy(comm::MakeLocalGroup));
//   // In the thread of each of the ranks 0 and 2, in any order:
//   TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<comm::Communicator> comm,
//                           groups.Join(rank, {0, 2}));
//   // At the end of a rank's program:
//   groups.Leave(rank);
//
// Only members join, so ranks outside of a group need not know of it. The n-th
// group that a rank makes of the same members is the n-th one of its peers, and
// has a name of its own.
//
// A rank that has left takes part in nothing any more: peers in its process
// that need it for something that they have started, or start later, get
// kUnavailable. Peers in other processes get it from AbortStale().
//
// Errors: kInvalidArgument for members that do not exist, are listed twice, or
// lack the rank; the status of Abort() once it was called.
// Threads: any.

#ifndef ACTORS_PROGRAM_PROGRAM_GROUPS_H_
#define ACTORS_PROGRAM_PROGRAM_GROUPS_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "actors/setup/group_makers.h"
#include "comm/communicator.h"

namespace troupe::actors {

class ProgramGroups {
 public:
  ProgramGroups(int ranks, GroupMaker make_group)
      : ranks_(ranks), make_group_(std::move(make_group)), left_(ranks) {}

  // Returns the rank's communicator in a group of `members`, whose order gives
  // their numbers in the group. The group keeps it, too, until Leave().
  absl::StatusOr<std::shared_ptr<comm::Communicator>> Join(
      int rank, const std::vector<int>& members) ABSL_LOCKS_EXCLUDED(mutex_);
  void Leave(int rank) ABSL_LOCKS_EXCLUDED(mutex_);
  // Lets Leave() keep the rank's communicators until this object ends: for
  // groups whose peers in other processes may still be at work with them, and
  // would lose their memory (NCCL's). Called before the first Join().
  void KeepUntilTheEnd() { keeps_ = true; }
  // Ends the work of groups that wait for nobody but ranks that have returned
  // from their programs, if it has been found waiting by the call before, too:
  // what those have started comes sooner.
  void AbortStale(const std::vector<bool>& returned)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends all work of all groups, present and future.
  void Abort(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Handles = std::vector<std::shared_ptr<comm::Communicator>>;
  struct Made {
    Handles handles;         // null for a member that lives elsewhere, or left
    std::vector<bool> here;  // whether a member lives in this process
  };
  // The members, and the number of the group among those of the same members.
  using Key = std::pair<std::vector<int>, int>;

  absl::Status Check(int rank, const std::vector<int>& members) const;
  // Takes the rank's communicators out of all groups.
  Handles Remove(int rank) ABSL_LOCKS_EXCLUDED(mutex_);

  // A communicator, with the members of its group, and which of them are here.
  struct Listed {
    std::vector<int> members;
    std::vector<bool> here;
    std::shared_ptr<comm::Communicator> comm;
  };
  std::vector<Listed> All() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the members that `waiting` is for in vain, since they have
  // returned; none if it is for others, too.
  static std::vector<int> WaitsInVain(const Listed& listed,
                                      const comm::Waiting& waiting,
                                      const std::vector<bool>& returned);

  const int ranks_;
  const GroupMaker make_group_;
  bool keeps_ = false;
  mutable absl::Mutex mutex_;
  std::map<Key, Made> groups_ ABSL_GUARDED_BY(mutex_);
  // Number of groups of the same members that a rank has joined.
  std::map<std::pair<int, std::vector<int>>, int> joined_
      ABSL_GUARDED_BY(mutex_);
  std::vector<bool> left_ ABSL_GUARDED_BY(mutex_);
  absl::Status aborted_ ABSL_GUARDED_BY(mutex_);
  // Waits that the last AbortStale() has found.
  std::set<std::string> stale_;
};

}  // namespace troupe::actors

#endif  // ACTORS_PROGRAM_PROGRAM_GROUPS_H_
