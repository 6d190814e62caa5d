// Whether the processes that want to take part in a job belong together: plain
// data, without actors.
//
//   JoinRound round(/*processes=*/2);
//   TROUPE_RETURN_IF_ERROR(round.Add(join_of_0));
//   TROUPE_RETURN_IF_ERROR(round.Add(join_of_1));
//   if (round.complete()) WelcomeAll(round.Members());
//
// Errors (kFailedPrecondition, kInvalidArgument) name both processes and the
// first thing that differs, as "train.lr is 0.1 in process 0 (a, pid 17) and
// 0.2 in process 1 (b, pid 4711)". After an error the round is over.

#ifndef ACTORS_CLUSTER_JOIN_ROUND_H_
#define ACTORS_CLUSTER_JOIN_ROUND_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "actors/cluster/cluster_messages.h"
#include "actors/setup/roster.h"

namespace troupe::actors {

// Limits of a job, and of the ranks in each of its processes.
inline constexpr int kProcessesMax = 256;
inline constexpr int kRanksMax = 1024;

class JoinRound {
 public:
  explicit JoinRound(int processes) : joins_(processes) {}

  absl::Status Add(const Join& join);
  bool complete() const { return joined_ == static_cast<int>(joins_.size()); }
  bool HasJoined(int process) const { return joins_[process].has_value(); }
  // "process 1 (node7, pid 4711)"; the number alone of one that has not joined.
  std::string Describe(int process) const;
  // The members of a complete round, by process.
  std::vector<Member> Members() const;
  // "process 2 and process 3 have not joined"
  std::string DescribeMissing() const;

 private:
  absl::Status Compare(const Join& join) const;

  std::vector<std::optional<Join>> joins_;  // by process
  int joined_ = 0;
};

// The first line that two texts of "name = value" lines differ in: "train.lr is
// 0.1 in A and 0.2 in B"; empty where they are equal.
std::string FirstDifference(const std::string& a_text, const std::string& a,
                            const std::string& b_text, const std::string& b);

}  // namespace troupe::actors

#endif  // ACTORS_CLUSTER_JOIN_ROUND_H_
