// Collects the Join messages of a job's processes and checks that they agree.
// Plain data, without actors.
//
//   JoinRound round(/*processes=*/2);
//   TROUPE_RETURN_IF_ERROR(round.Add(join_of_0));
//   TROUPE_RETURN_IF_ERROR(round.Add(join_of_1));
//   if (round.complete()) WelcomeAll(round.Members());
//
// Errors (kFailedPrecondition, kInvalidArgument) name both processes and the
// first setting that differs, for example "train.lr is 0.1 in process 0 (a, pid
// 17) and 0.2 in process 1 (b, pid 4711)". After an error the round is over.

#ifndef ACTORS_CLUSTER_JOIN_ROUND_H_
#define ACTORS_CLUSTER_JOIN_ROUND_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "actors/cluster/cluster_messages.h"
#include "actors/setup/roster.h"

namespace troupe::actors {

// Limits on the processes of a job, and on the ranks of each process.
inline constexpr int kProcessesMax = 256;
inline constexpr int kRanksMax = 1024;

class JoinRound {
 public:
  explicit JoinRound(int processes) : joins_(processes) {}

  absl::Status Add(const Join& join);
  bool complete() const { return joined_ == static_cast<int>(joins_.size()); }
  bool HasJoined(int process) const { return joins_[process].has_value(); }
  // Returns "process 1 (node7, pid 4711)"; "process 1" if it has not joined.
  std::string Describe(int process) const;
  // Returns the members, sorted by process. The round must be complete.
  std::vector<Member> Members() const;
  // Returns "process 2, process 3 did not join".
  std::string DescribeMissing() const;

 private:
  absl::Status Compare(const Join& join) const;

  std::vector<std::optional<Join>> joins_;  // one for each process
  int joined_ = 0;
};

// Checks a list of members that process 0 sent: there is one for each process,
// in order, and each has ranks.
//   kInternal: names the member that is wrong.
absl::Status CheckMembers(const std::vector<Member>& members, int processes);

// Returns the first difference, in the order of names, between two texts of
// "name = value" lines: "train.lr is 0.1 in A and 0.2 in B", where A and B are
// the names `a` and `b`. Empty if the texts are equal.
std::string FirstDifference(const std::string& a_text, const std::string& a,
                            const std::string& b_text, const std::string& b);

}  // namespace troupe::actors

#endif  // ACTORS_CLUSTER_JOIN_ROUND_H_
