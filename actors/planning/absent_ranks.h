// Stands in for the other ranks while one thread measures a part of the model:
// nothing reduces its gradients, and sums of layers along tp have the thread's
// own terms alone; they are counted. A chunk takes it as its listener, and its
// axes() as the collectives of layers.
//
// Threads: one.

#ifndef ACTORS_PLANNING_ABSENT_RANKS_H_
#define ACTORS_PLANNING_ABSENT_RANKS_H_

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "actors/chunks/chunk.h"
#include "nn/collectives.h"
#include "pipeline/cut_search.h"

namespace troupe::actors {

class AbsentRanks : public Chunk::Listener, private nn::Collectives {
 public:
  // `tp`: number of ranks along tp.
  explicit AbsentRanks(int tp) : tp_(tp), axes_{{"tp", this}} {}
  AbsentRanks(const AbsentRanks&) = delete;
  AbsentRanks& operator=(const AbsentRanks&) = delete;

  // Collectives of a chunk's layers; none if there is one rank along tp.
  absl::Span<const nn::AxisCollectives> axes() const {
    return absl::MakeConstSpan(axes_).subspan(0, tp_ > 1 ? 1 : 0);
  }

  // Returns the sums of layers since the last call.
  pipeline::LayerSums TakeSums() {
    return std::exchange(sums_, pipeline::LayerSums());
  }

  void BucketReady(int, int, int) override {}
  void BucketReleased(int, int) override {}

 private:
  int rank() const override { return 0; }
  int size() const override { return tp_; }
  absl::Status AllReduce(nn::ReduceOp, const nn::Tensor& range) override {
    ++sums_.count;
    sums_.bytes += static_cast<double>(range.numel()) *
                   static_cast<double>(nn::SizeOf(range.dtype()));
    return absl::OkStatus();
  }

  const int tp_;
  const std::vector<nn::AxisCollectives> axes_;
  pipeline::LayerSums sums_;
};

}  // namespace troupe::actors

#endif  // ACTORS_PLANNING_ABSENT_RANKS_H_
