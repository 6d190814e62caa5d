// The wait-for graph of a job's ranks: which rank waits for which, and the root
// of the waits.
//
//   WaitGraph graph(/*ranks=*/3, /*roster=*/nullptr);
//   graph.SetLost(2);
//   for (const RankWaits& answer : answers) graph.Add(answer);
//   graph.ToString();
//   // the root of the wait is rank 2, which is lost
//   // ranks 0, 1 have waited 3ms for rank 2 in step 412, bucket 1:
//   //     all_reduce(sum, f32 x 120), collective 823 of group replicas
//
// Nodes are ranks. An edge leads from a rank to each rank that it waits for and
// that has not joined the wait. A rank cannot tell whether a peer in another
// process has joined a collective, so of two ranks that both wait for the same
// collective, neither gets an edge to the other.
//
// A root is a rank without edges for which others wait: it is lost, gives no
// answer, computes or does nothing. If ranks wait for each other in a cycle,
// the cycle is the root. If any rank is lost, only ranks that are lost, give no
// answer or compute are called roots.
//
// Answers come over the network: rank numbers that do not exist are ignored.
//
// Threads: one at a time. Cost: linear in the number of edges.

#ifndef ACTORS_SUPERVISION_WAIT_GRAPH_H_
#define ACTORS_SUPERVISION_WAIT_GRAPH_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/protocol/rank_waits.h"
#include "actors/setup/roster.h"

namespace troupe::actors {

class WaitGraph {
 public:
  // `roster` describes the processes of roots. It may be null; else it must
  // outlive the graph.
  WaitGraph(int ranks, const Roster* roster);

  // Marks a rank whose process is dead or silent.
  void SetLost(int rank);
  // Excludes a rank that is not asked. A rank that waits for it and for others
  // is reported to wait only for the others.
  void LeaveOut(int rank);
  // Adds a rank's answer, which replaces its earlier one.
  void Add(RankWaits answer);

  // Returns the ranks that should be asked (again): not lost or left out, and
  // without an answer, or busy when they gave it.
  std::vector<int> Unsettled() const;

  // Returns the roots in one line, then a line for each wait, then one for each
  // activity of ranks that do not wait; at most kLinesMax lines, without a line
  // break at the end.
  std::string ToString() const;

  static constexpr int kLinesMax = 10;

 private:
  struct Node {
    bool lost = false;
    bool left_out = false;
    std::optional<RankWaits> answer;
  };
  // A rank without edges, or a cycle of ranks, each of which waits for the
  // next.
  using Root = std::vector<int>;
  struct Edges {
    std::vector<std::vector<int>> to, from;  // indexed by rank
  };

  bool has(int rank) const {
    return rank >= 0 && rank < static_cast<int>(nodes_.size());
  }
  // Whether `rank`, which has answered, waits for the same collective as
  // `wait`.
  bool Joined(int rank, const RankWait& wait) const;
  // Returns the ranks of `wait` that rank `waiting` really waits for.
  std::vector<int> Missing(int waiting, const RankWait& wait) const;
  // Returns the wait of a rank that ToString() reports, its longest with a
  // missing rank if there is one; null if the rank does not wait.
  const RankWait* Told(int rank) const;
  Edges FindEdges() const;
  std::vector<Root> FindRoots(const Edges& edges) const;

  std::string StateOf(int rank) const;
  std::string RootsText(const std::vector<Root>& roots) const;
  std::vector<std::string> WaitLines(const std::vector<bool>& is_root) const;
  std::vector<std::string> StateLines(const std::vector<bool>& is_root) const;

  std::vector<Node> nodes_;  // indexed by rank
  bool any_lost_ = false;
  const Roster* const roster_;
};

}  // namespace troupe::actors

#endif  // ACTORS_SUPERVISION_WAIT_GRAPH_H_
