// Computes the root of a group's tree from the sums of its nodes (layout.h):
// the same bits as ReduceTree() over all ranks.
//
//   NodeTree tree(&layout);
//   tree.Reduce(reduction, {node_sums, rank_inputs}, destinations, count);
//
// If the tree over the nodes has the shape of a tree over as many ranks, it is
// one ReduceTree(); otherwise partial results stay in pieces of 2 KB in the
// first-level cache. Threads: any.

#ifndef COMM_SPANNING_PLAN_NODE_TREE_H_
#define COMM_SPANNING_PLAN_NODE_TREE_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "comm/reduction/reduction_tree.h"
#include "comm/spanning/plan/layout.h"

namespace troupe::comm::internal {

class NodeTree {
 public:
  struct Sources {
    // Sums, by node; null: computed from `ranks`.
    const char* const* nodes;
    // Inputs, by rank of the group; used for ranks whose node is null.
    const char* const* ranks;
  };

  // `layout` outlives the tree.
  explicit NodeTree(const GroupLayout* layout);

  // Destinations may be among the sources.
  void Reduce(const Reduction& reduction, const Sources& sources,
              absl::Span<void* const> destinations, std::size_t count) const;

 private:
  struct Vertex {
    int first = 0, last = 0;    // nodes [first, last)
    int left = -1, right = -1;  // vertices
    bool regular = false;  // has the shape of a tree over last - first ranks
  };
  struct Piece;

  int AddVertex(int begin, int end, int* node);
  const char* Subtree(const Piece& piece, int vertex, char* scratch) const;
  void Vertices(const Piece& piece, int vertex, int ranks,
                absl::Span<void* const> destinations) const;

  const GroupLayout* const layout_;
  std::vector<Vertex> vertices_;
  int root_ = 0;
};

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_PLAN_NODE_TREE_H_
