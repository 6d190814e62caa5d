// The pieces of a collective between processes: which process computes each,
// and which parts are sent for that. Every process makes the same plan for the
// blocks in which it takes part.
//
//   TransferPlan plan(layout, blocks, /*element_bytes=*/4, settings);
//   for (int i = 0; i < plan.pieces(); ++i) {
//     if (plan.Computes(i, layout.self())) Compute(plan.piece(i));
//   }
//
// A piece is a range of a block (flow.h). In the first step every member that
// holds inputs sends *parts* of the piece to the members that compute it: the
// sum of each of its nodes for a tree, the value itself for a copy. In the
// second step the *owner* of a piece, if it has one, sends the value to the
// other members that want it.

#ifndef COMM_SPANNING_PLAN_TRANSFER_PLAN_H_
#define COMM_SPANNING_PLAN_TRANSFER_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "comm/flow.h"
#include "comm/spanning/plan/layout.h"

namespace troupe::comm::internal {

// Settings that must be equal in all processes, those of a member in this
// process and in the member's.
struct TransferSettings {
  // Size of all parts for, or from, a member up to which they travel in the
  // note. Index: member.
  absl::InlinedVector<std::size_t, 8> eager_bytes;
  std::size_t piece_bytes = 0;
  std::optional<bool> two_step;  // see FabricOptions
};

// Packs the settings into a word, which this process sends to `member`.
std::uint64_t PackSettings(const TransferSettings& settings, int member);
// Returns "eager_bytes = 100, piece_bytes = 256, two_step = true"; two_step is
// "unset" if there is none.
std::string DescribeSettings(std::uint64_t packed);

class TransferPlan {
 public:
  static constexpr int kEveryone = -1;
  static constexpr int kTree = -1;

  struct PlannedBlock {
    Block block;
    int source = kTree;       // member that holds the copied input
    std::vector<bool> wants;  // index: member
    int first_piece = 0, end_piece = 0;
  };
  struct Piece {
    int block = 0;
    std::int64_t begin = 0, count = 0;  // elements of the block
    int owner = kEveryone;              // a member, or all that want it
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

  // Returns whether `member` evaluates the tree, or has the copied value, of
  // piece i.
  bool Computes(int i, int member) const;
  // Returns whether `from` sends its parts, or the value, of piece i to `to` in
  // the first step.
  bool SendsParts(int i, int from, int to) const;
  // Returns whether it sends them in frames of their own, not in its note.
  bool SendsFrames(int i, int from, int to) const {
    return SendsParts(i, from, to) && !eager(from, to);
  }
  // Returns whether these are parts of a tree, so that `to` buffers them.
  bool BuffersParts(int i, int from, int to) const {
    return block_of(i).source == kTree && SendsFrames(i, from, to);
  }
  // Returns whether `from` sends the value to `to` in the second step.
  bool Forwards(int i, int from, int to) const;
  // Returns the member that sends the value of piece i to `member`; -1: none.
  int ValueFrom(int i, int member) const;
  // Returns the number of frames of piece i that `member` receives.
  int FramesFor(int i, int member) const;

  // Enumerates what `from` sends to `to` in the first step, in an order that
  // both can compute; node -1: the value.
  void ForEachPart(int from, int to,
                   const std::function<void(int piece, int node)>& f) const;
  // Returns the bytes of these parts; one of the two must be this process.
  std::size_t PartBytes(int from, int to) const {
    return from == layout_.self() ? bytes_to_[to] : bytes_from_[from];
  }
  // Returns whether these parts travel in the note.
  bool eager(int from, int to) const {
    const int other = from == layout_.self() ? to : from;
    return PartBytes(from, to) <= settings_.eager_bytes[other];
  }

  // KeyOf() returns a block's name in frames; Find() returns the piece of that
  // block that begins at an element, -1 if there is none.
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
  std::vector<PlannedBlock> blocks_;  // sorted by key
  std::vector<Piece> pieces_;
  std::vector<std::size_t> bytes_to_, bytes_from_;  // index: member
};

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_PLAN_TRANSFER_PLAN_H_
