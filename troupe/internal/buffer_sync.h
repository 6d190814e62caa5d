// Makes the buffers of a DDP's replicas (running statistics) equal, as
// PyTorch's broadcast_buffers does, or averages them.
//
//   BufferSync sync(group, kernels, module);
//   sync.Broadcast(/*root=*/0);
//   sync.Average(/*root=*/0, /*contributes=*/true, /*factor=*/1);
//
// Buffers of one dtype travel as one range, whatever their number: they are
// copied into it and back. A single buffer of a dtype travels as it is.
//
// Errors: base::StatusError, those of the group.
// Threads: the rank's own.

#ifndef TROUPE_INTERNAL_BUFFER_SYNC_H_
#define TROUPE_INTERNAL_BUFFER_SYNC_H_

#include <vector>

#include "nn/autograd/buffer.h"
#include "nn/kernels/kernels.h"
#include "nn/modules/module.h"
#include "nn/tensor/tensor.h"
#include "troupe/group.h"

namespace troupe {

class BufferSync {
 public:
  // All references outlive it. The module's buffers have memory.
  BufferSync(Group& group, nn::Kernels& kernels, nn::Module& module);

  // Gives all ranks the buffers of rank `root` of the group.
  void Broadcast(int root);
  // Gives all ranks the averages of floating-point buffers, and rank `root`'s
  // integers, which are counters. A rank that does not contribute adds zeros;
  // averages over all ranks of the group are then multiplied by `factor`: the
  // number of ranks over that of those that contribute.
  void Average(int root, bool contributes, double factor);

 private:
  // The buffers of one dtype, one behind the other in `flat`.
  struct Range {
    std::vector<nn::Buffer*> buffers;
    nn::Tensor flat;
  };

  void Pack(const Range& range);
  void Unpack(const Range& range);
  void BroadcastRange(const Range& range, int root);

  Group& group_;
  nn::Kernels& kernels_;
  std::vector<Range> ranges_;  // ordered by the first buffer of each dtype
};

}  // namespace troupe

#endif  // TROUPE_INTERNAL_BUFFER_SYNC_H_
