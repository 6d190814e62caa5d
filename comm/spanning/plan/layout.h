// The placement of a group's ranks on processes, and the parts of the reduction
// tree that each process computes by itself: the maximal nodes all of whose
// ranks live there.
//
//   GroupLayout layout(/*process_of=*/{0, 0, 1, 1, 0}, /*process=*/0);
//   // nodes: [0, 2) of member 0, [2, 4) of member 1, [4, 5) of member 0
//
// A *member* is a process that has ranks of the group; members are numbered in
// the order of their processes. A *node* is a range of ranks whose sum one
// process can compute by itself, and sends in place of its ranks' inputs.

#ifndef COMM_SPANNING_PLAN_LAYOUT_H_
#define COMM_SPANNING_PLAN_LAYOUT_H_

#include <string>
#include <vector>

namespace troupe::comm::internal {

class GroupLayout {
 public:
  struct Node {
    int begin = 0, end = 0;  // ranks
    int member = 0;
    int ranks() const { return end - begin; }
  };

  // `process_of` is indexed by rank of the group; `process` is this one.
  GroupLayout(const std::vector<int>& process_of, int process);

  int size() const { return static_cast<int>(member_of_.size()); }
  int members() const { return static_cast<int>(processes_.size()); }
  // Returns the member that is this process; -1 if it has no rank.
  int self() const { return self_; }

  int member_of(int rank) const { return member_of_[rank]; }
  int process_of(int member) const { return processes_[member]; }
  // Returns the member at `process`; -1 if that process has no rank.
  int member_at(int process) const;
  const std::vector<int>& ranks_of(int member) const { return ranks_[member]; }
  // Returns the index of `rank` among the ranks of its member.
  int place_of(int rank) const { return place_of_[rank]; }

  // Returns all nodes, in rank order.
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<int>& nodes_of(int member) const {
    return nodes_of_[member];
  }

 private:
  void AddNodes(int begin, int end);

  std::vector<int> member_of_, place_of_;   // index: rank
  std::vector<int> processes_;              // index: member
  std::vector<std::vector<int>> ranks_;     // index: member
  std::vector<std::vector<int>> nodes_of_;  // index: member
  std::vector<Node> nodes_;
  int self_ = -1;
};

// Returns "rank 1", "ranks 1, 3".
std::string Ranks(const std::vector<int>& ranks);

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_PLAN_LAYOUT_H_
