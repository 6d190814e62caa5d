// The wait-for graph of a job's ranks: who waits for whom, and for whom
// everybody waits in the end.
//
//   WaitGraph graph(/*ranks=*/3, /*roster=*/nullptr);
//   graph.SetLost(2);
//   for (const RankWaits& answer : answers) graph.Add(answer);
//   graph.ToString();
//   // the root of the wait is rank 2, which is lost
//   // ranks 0, 1 have waited 3ms for rank 2 in step 412, bucket 1:
//   //     all_reduce(sum, f32 x 120), collective 823 of group replicas
//
// Nodes are ranks. An edge goes from a rank to each that it waits for and that
// has not come. A rank cannot know whether a peer in another process has come:
// of two that wait for the same collective neither waits for the other.
//
// A root waits for nobody, and others wait for it: it is lost, gives no answer,
// computes or does nothing. Where following the edges ends nowhere, ranks wait
// for each other in a circle, and that is the root. Where a rank is lost, only
// who is lost too, gives no answer or computes is called a root.
//
// Answers come over a wire: ranks that there are not are left out.
//
// Threads: one at a time. Cost: linear in the edges.

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
  // `roster` names the processes of roots; may be null, else outlives the
  // graph.
  WaitGraph(int ranks, const Roster* roster);

  // Its process is dead, or silent.
  void SetLost(int rank);
  // It is not asked. Whoever waits for it and others is said to wait for these.
  void LeaveOut(int rank);
  // A later answer of a rank replaces an earlier one.
  void Add(RankWaits answer);

  // The ranks of which more may be learnt: not lost, and without an answer, or
  // busy when they gave it.
  std::vector<int> Unsettled() const;

  // The roots in one line, then a line for each wait, and for what the others
  // do; at most kLinesMax. Lines are separated, not ended.
  std::string ToString() const;

  static constexpr int kLinesMax = 10;

 private:
  struct Node {
    bool lost = false;
    bool left_out = false;
    std::optional<RankWaits> answer;
  };
  // A rank without edges, or several in a circle, each of which waits for the
  // next.
  using Root = std::vector<int>;
  struct Edges {
    std::vector<std::vector<int>> to, from;  // by rank
  };

  bool has(int rank) const {
    return rank >= 0 && rank < static_cast<int>(nodes_.size());
  }
  // Whether `rank` has started the very collective of `wait`.
  bool Joined(int rank, const RankWait& wait) const;
  // Those of wait.ranks that keep rank `waiting` from going on.
  std::vector<int> Missing(int waiting, const RankWait& wait) const;
  // The wait that is told of a rank; null: there is none.
  const RankWait* Told(int rank) const;
  Edges FindEdges() const;
  std::vector<Root> FindRoots(const Edges& edges) const;

  std::string StateOf(int rank) const;
  std::string RootsText(const std::vector<Root>& roots) const;
  std::vector<std::string> WaitLines(const std::vector<bool>& is_root) const;
  std::vector<std::string> StateLines(const std::vector<bool>& is_root) const;

  std::vector<Node> nodes_;  // by rank
  bool any_lost_ = false;
  const Roster* const roster_;
};

}  // namespace troupe::actors

#endif  // ACTORS_SUPERVISION_WAIT_GRAPH_H_
