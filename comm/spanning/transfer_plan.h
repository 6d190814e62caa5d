// The pieces of a collective between processes: who computes each, and who
// sends what to whom for that. Every process makes the same plan of the blocks
// that it has to do with.
//
//   TransferPlan plan(layout, blocks, /*element_bytes=*/4, settings);
//   for (int i = 0; i < plan.pieces(); ++i) {
//     if (plan.Computes(i, layout.self())) Compute(plan.piece(i));
//   }
//
// A piece is a range of a block (flow.h). In the first step every member that
// holds inputs sends *parts* of the piece to those who compute it: of a tree,
// the sum of each of its nodes; of a copy, the value itself. In the second, a
// piece's *owner*, where it has one, sends the value to the others who want it.

#ifndef COMM_SPANNING_TRANSFER_PLAN_H_
#define COMM_SPANNING_TRANSFER_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "comm/flow.h"
#include "comm/spanning/layout.h"

namespace troupe::comm::internal {

// The same in all processes.
struct TransferSettings {
  std::size_t eager_bytes = 0;
  std::size_t piece_bytes = 0;
  std::optional<bool> two_step;  // as in FabricOptions
};

class TransferPlan {
 public:
  static constexpr int kEveryone = -1;
  static constexpr int kTree = -1;

  struct PlannedBlock {
    Block block;
    int source = kTree;       // the member whose rank's input it is
    std::vector<bool> wants;  // by member
    int first_piece = 0, end_piece = 0;
  };
  struct Piece {
    int block = 0;
    std::int64_t begin = 0, count = 0;  // elements of the block
    int owner = kEveryone;              // a member; or whoever wants it
  };

  // `layout` outlives the plan.
  TransferPlan(const GroupLayout& layout, std::vector<Block> blocks,
               std::size_t element_bytes, const TransferSettings& settings);

  int blocks() const { return static_cast<int>(blocks_.size()); }
  const PlannedBlock& block(int b) const { return blocks_[b]; }
  int pieces() const { return static_cast<int>(pieces_.size()); }
  const Piece& piece(int i) const { return pieces_[i]; }
  const PlannedBlock& block_of(int i) const {
    return blocks_[pieces_[i].block];
  }
  std::size_t BytesOf(int i) const {
    return static_cast<std::size_t>(pieces_[i].count) * element_bytes_;
  }

  // Whether `member` evaluates the tree, or has the copied value, of piece i.
  bool Computes(int i, int member) const;
  // Whether `from` sends its parts, or the value, of piece i to `to` in the
  // first step.
  bool SendsParts(int i, int from, int to) const;
  // Whether `from` sends the value to `to` in the second.
  bool Forwards(int i, int from, int to) const;
  // The member that sends the value of piece i to `member`; -1: none.
  int ValueFrom(int i, int member) const;
  // Frames of piece i that `member` gets.
  int FramesFor(int i, int member) const;

  // What `from` sends to `to` in the first step, in an order that both know;
  // node -1: the value.
  void ForEachPart(int from, int to,
                   const std::function<void(int piece, int node)>& f) const;
  // Its bytes, where one of the two is this process.
  std::size_t PartBytes(int from, int to) const {
    return from == layout_.self() ? bytes_to_[to] : bytes_from_[from];
  }
  // Whether it rides in the note.
  bool eager(int from, int to) const {
    return PartBytes(from, to) <= settings_.eager_bytes;
  }

  // A block's name in frames, and the piece that begins at an element; -1 where
  // there is none.
  static std::uint32_t KeyOf(const Block& block) {
    return static_cast<std::uint32_t>(block.from + 1) << 16 |
           static_cast<std::uint32_t>(block.to + 1);
  }
  int Find(std::uint32_t key, std::uint64_t begin) const;

 private:
  void Cut(int block);
  std::size_t SumOfParts(int from, int to) const;
  void CutRange(int block, std::int64_t begin, std::int64_t end, int owner);

  const GroupLayout& layout_;
  const std::size_t element_bytes_;
  const TransferSettings settings_;
  std::vector<PlannedBlock> blocks_;  // by key
  std::vector<Piece> pieces_;
  std::vector<std::size_t> bytes_to_, bytes_from_;  // by member
};

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_TRANSFER_PLAN_H_
