#include "comm/spanning/plan/node_tree.h"

#include <algorithm>

#include "nn/tensor/dtype.h"

namespace troupe::comm::internal {
namespace {

// Number of bytes of each source that are processed at a time.
constexpr std::size_t kPieceBytes = 2048;

}  // namespace

struct NodeTree::Piece {
  Reduction reduction;
  Sources sources;
  std::size_t offset;  // bytes
  std::size_t count;   // elements

  const char* Node(int node) const {
    return sources.nodes[node] == nullptr ? nullptr
                                          : sources.nodes[node] + offset;
  }
};

NodeTree::NodeTree(const GroupLayout* layout) : layout_(layout) {
  int node = 0;
  root_ = AddVertex(0, layout->size(), &node);
}

int NodeTree::AddVertex(int begin, int end, int* node) {
  Vertex vertex;
  vertex.first = *node;
  const GroupLayout::Node& next = layout_->nodes()[*node];
  if (next.begin == begin && next.end == end) {
    ++*node;
    vertex.regular = true;
  } else {
    const int middle = begin + TreeSplit(end - begin);
    vertex.left = AddVertex(begin, middle, node);
    vertex.right = AddVertex(middle, end, node);
    const Vertex& left = vertices_[vertex.left];
    vertex.regular = left.regular && vertices_[vertex.right].regular &&
                     left.last - left.first == TreeSplit(*node - vertex.first);
  }
  vertex.last = *node;
  vertices_.push_back(vertex);
  return static_cast<int>(vertices_.size()) - 1;
}

// Writes the sum to `scratch`, or returns the address where it already lies.
const char* NodeTree::Subtree(const Piece& piece, int vertex,
                              char* scratch) const {
  void* const to = scratch;
  const Vertex& top = vertices_[vertex];
  if (top.left >= 0) {
    Vertices(piece, vertex, /*ranks=*/0, absl::MakeConstSpan(&to, 1));
    return scratch;
  }
  if (const char* sum = piece.Node(top.first)) return sum;
  const GroupLayout::Node& node = layout_->nodes()[top.first];
  const void* ranks[kReductionSourcesMax];
  for (int r = node.begin; r < node.end; ++r) {
    ranks[r - node.begin] = piece.sources.ranks[r] + piece.offset;
  }
  if (node.ranks() == 1) return static_cast<const char*>(ranks[0]);
  Reduction inner = piece.reduction;
  inner.ranks = 0;
  ReduceTree(inner, absl::MakeConstSpan(ranks, node.ranks()),
             absl::MakeConstSpan(&to, 1), piece.count);
  return scratch;
}

void NodeTree::Vertices(const Piece& piece, int vertex, int ranks,
                        absl::Span<void* const> destinations) const {
  alignas(64) char scratch[2][kPieceBytes];
  const Vertex& top = vertices_[vertex];
  const void* const halves[2] = {Subtree(piece, top.left, scratch[0]),
                                 Subtree(piece, top.right, scratch[1])};
  Reduction reduction = piece.reduction;
  reduction.ranks = ranks;
  ReduceTree(reduction, halves, destinations, piece.count);
}

void NodeTree::Reduce(const Reduction& reduction, const Sources& sources,
                      absl::Span<void* const> destinations,
                      std::size_t count) const {
  const int nodes = static_cast<int>(layout_->nodes().size());
  const void* all[kReductionSourcesMax];
  bool at_hand = vertices_[root_].regular;
  for (int i = 0; i < nodes && at_hand; ++i) {
    const GroupLayout::Node& node = layout_->nodes()[i];
    all[i] = sources.nodes[i] == nullptr && node.ranks() == 1
                 ? sources.ranks[node.begin]
                 : sources.nodes[i];
    at_hand = all[i] != nullptr;
  }
  if (at_hand) {
    return ReduceTree(reduction, absl::MakeConstSpan(all, nodes), destinations,
                      count);
  }
  const std::size_t element_bytes = nn::SizeOf(reduction.dtype);
  const std::size_t step = kPieceBytes / element_bytes;
  std::vector<void*> to(destinations.size());
  for (std::size_t begin = 0; begin < count; begin += step) {
    const Piece piece{reduction, sources, begin * element_bytes,
                      std::min(step, count - begin)};
    for (std::size_t i = 0; i < to.size(); ++i) {
      to[i] = static_cast<char*>(destinations[i]) + piece.offset;
    }
    Vertices(piece, root_, reduction.ranks, to);
  }
}

}  // namespace troupe::comm::internal
