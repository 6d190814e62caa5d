// The list of a job's processes: their hosts, process ids and ranks.
//
//   Roster roster(members);
//   roster.ProcessOf(/*rank=*/3);                                  // 1
//   roster.Describe(1);   // "process 1 (node7, pid 4711, ranks 2 to 3)"
//
// Equal in all processes, and constant. Plain data, without actors.

#ifndef ACTORS_SETUP_ROSTER_H_
#define ACTORS_SETUP_ROSTER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace troupe::actors {

struct Member {
  std::int32_t process = 0;
  std::int32_t ranks = 1;  // number of ranks in the process
  std::string host;        // name of its host
  std::int64_t pid = 0;
  std::string data_host;  // address at which it listens for data; empty: host's
};

class Roster {
 public:
  // `members` are in the order of process numbers.
  explicit Roster(std::vector<Member> members);

  int processes() const { return static_cast<int>(members_.size()); }
  int ranks() const { return first_rank_.back(); }
  const Member& member(int process) const { return members_[process]; }
  // The ranks of a process are [FirstRankOf(p), FirstRankOf(p + 1)).
  int FirstRankOf(int process) const { return first_rank_[process]; }
  int ProcessOf(int rank) const;
  // Returns the process of each rank, by rank.
  std::vector<int> ProcessesOfRanks() const;

  std::string Describe(int process) const;

 private:
  std::vector<Member> members_;
  std::vector<int> first_rank_;  // [processes + 1]
};

}  // namespace troupe::actors

#endif  // ACTORS_SETUP_ROSTER_H_
