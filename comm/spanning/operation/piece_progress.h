// Progress of one piece of a collective in one process: frames that arrive,
// frames that are being sent, and the step that it has reached.
//
//   PieceProgress piece;
//   piece.Reset(/*frames=*/1, /*nodes=*/2);
//   piece.Place(node, member, piece.Keep(std::move(buffer)));
//   piece.Arrive(node);                       // the frame is complete
//   if (piece.TakeReady()) Compute(piece.Data(node));
//
// A piece waits for its frames, and until its own parts have been sent; then it
// is computed, forwarded if this process owns it, and done. `node` is a node of
// the layout (layout.h) whose sum a frame contains, or kValue: the value
// itself.
//
// Not thread-safe: used under the group's lock, except that the task that
// computes a piece, after TakeReady(), reads and writes its data without.

#ifndef COMM_SPANNING_OPERATION_PIECE_PROGRESS_H_
#define COMM_SPANNING_OPERATION_PIECE_PROGRESS_H_

#include <utility>
#include <vector>

#include "comm/spanning/frames/staging.h"

namespace troupe::comm::internal {

class PieceProgress {
 public:
  static constexpr int kValue = -1;
  // Sums of nodes, by node.
  using Sums = std::vector<std::pair<int, StagingBuffer>>;

  // Prepares for a collective. `frames` is the number of frames that this
  // process receives, `nodes` the number of nodes of the layout if the tree is
  // computed here, otherwise 0.
  void Reset(int frames, int nodes);

  // Frames that arrive. Data() returns null until one was placed.
  const char* Data(int node) const { return of(node).data; }
  int nodes() const { return static_cast<int>(nodes_.size()); }
  // Records that a frame of `member` is being received at `to`.
  void Place(int node, int member, const char* to);
  // Returns whether such a frame is being received.
  bool Receiving(int node, int member) const;
  // Records that it is complete.
  void Arrive(int node);
  // Records that the data arrived, within a note.
  void AddFromNote(int node, int member, const char* data);
  // Keeps a buffer until the piece is done, and returns its data.
  char* Keep(StagingBuffer buffer);

  // Sums of this process's own nodes that it sends; Part() returns null for a
  // node that is one rank's input.
  void SetParts(Sums parts) { parts_ = std::move(parts); }
  const Sums& parts() const { return parts_; }
  const char* Part(int node) const;
  // ExpectParts() makes the piece wait until SetSent() records that its parts
  // were passed to the links.
  void ExpectParts() { parts_missing_ = true; }
  void SetSent() { parts_missing_ = false; }

  // Frames that links are sending. EndSend() returns whether it was the last.
  void BeginSend() { ++sends_out_; }
  bool EndSend() { return --sends_out_ == 0; }
  bool sending() const { return sends_out_ > 0; }

  // Returns true once, when the piece can be computed.
  bool TakeReady();
  // Sets the value that was computed, for Data(kValue).
  void SetValue(const char* value) { value_.data = value; }
  void BeginForward() { stage_ = Stage::kForwarding; }
  bool forwarding() const { return stage_ == Stage::kForwarding; }
  // Ends the piece, and releases its buffers.
  void Finish();

 private:
  enum class Stage { kWaiting, kRunning, kForwarding, kDone };
  struct Arrived {
    const char* data = nullptr;
    int placed_by = -1;  // member whose frame is being received there
    bool whole = false;
  };

  Arrived& of(int node) { return node == kValue ? value_ : nodes_[node]; }
  const Arrived& of(int node) const {
    return node == kValue ? value_ : nodes_[node];
  }

  Stage stage_ = Stage::kWaiting;
  bool parts_missing_ = false;
  int frames_missing_ = 0;
  int sends_out_ = 0;
  std::vector<Arrived> nodes_;  // empty unless the tree is computed here
  Arrived value_;
  Sums parts_;
  std::vector<StagingBuffer> buffers_;
};

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_OPERATION_PIECE_PROGRESS_H_
