// A part of a forward that keeps no activations: backward runs it again.
//
//   auto block = std::make_unique<Block>();        // ops/recompute.h has one
//   tape.RecordSegment(std::move(block), x, parameters, y);
//
// On the tape a segment is one step. When backward reaches it, Run() records
// the segment on a tape of its own, and the pieces of that tape's backward are
// pieces of the outer one. The segment's parameters count as used and read from
// the forward until the recomputation has run and its backward is past them: so
// nobody updates them before, and their gradients are complete as soon as they
// would be without it.
//
// Gradients have the bits of a forward that is not run again, except where the
// input is used several times inside and also outside: inside is summed first.

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
  // Runs the segment on `tape` from what the forward was given; puts the
  // watched input into `x` and returns the output.
  virtual absl::StatusOr<Tensor> Run(Kernels& kernels, Tape& tape,
                                     Tensor& x) = 0;
};

// What the tape knows of a segment.
struct Tape::RecordedSegment {
  std::unique_ptr<Segment> segment;
  // By parameter: whether its use and its read are over.
  std::vector<bool> used, read;
  // From the recomputation on:
  Tape tape;
  Tensor x;
};

}  // namespace troupe::nn

#endif  // NN_AUTOGRAD_SEGMENT_H_
