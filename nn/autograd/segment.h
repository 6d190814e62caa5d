// A part of a forward that keeps no activations: backward runs it again.
//
//   auto block = std::make_unique<Block>();        // ops/recompute.h has one
//   tape.RecordSegment(std::move(block), x, parameters, y);
//
// On the tape a segment is one step. When backward reaches it, Run() records
// the segment on a tape of its own, and the pieces of that tape's backward are
// pieces of the outer one. The segment's parameters count as used and read from
// the forward until the recomputation and its backward are past them: so they
// are not updated before, and their gradients are complete as early as without
// recomputation.
//
// Gradients have the bits of a forward that is not run again, except if the
// input is used several times inside and also outside: the uses inside are
// summed first.

#ifndef NN_AUTOGRAD_SEGMENT_H_
#define NN_AUTOGRAD_SEGMENT_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "nn/autograd/tape.h"

namespace troupe::nn {

class Segment {
 public:
  virtual ~Segment() = default;
  // Runs the segment on `tape` from the inputs of the forward; puts the watched
  // input into `x` and returns the output.
  virtual absl::StatusOr<Tensor> Run(Kernels& kernels, Tape& tape,
                                     Tensor& x) = 0;
};

// State of a segment on its tape.
struct Tape::RecordedSegment {
  std::unique_ptr<Segment> segment;
  // Whether the last use, and the last read, of each parameter are over.
  std::vector<bool> used, read;
  // Set by the recomputation:
  Tape tape;
  Tensor x;
};

}  // namespace troupe::nn

#endif  // NN_AUTOGRAD_SEGMENT_H_
