// Stands in for the other ranks while one thread measures a part of the model:
// nothing reduces its gradients, and sums of layers along tp have the thread's
// own terms alone. A chunk takes it as its listener, and its axes() as the
// collectives of layers.
//
// Threads: one.

#ifndef ACTORS_PLANNING_ABSENT_RANKS_H_
#define ACTORS_PLANNING_ABSENT_RANKS_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "actors/chunks/chunk.h"
#include "nn/collectives.h"

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

  void BucketReady(int, int) override {}
  void BucketReleased(int, int) override {}

 private:
  int rank() const override { return 0; }
  int size() const override { return tp_; }
  absl::Status AllReduce(nn::ReduceOp, const nn::Tensor&) override {
    return absl::OkStatus();
  }

  const int tp_;
  const std::vector<nn::AxisCollectives> axes_;
};

}  // namespace troupe::actors

#endif  // ACTORS_PLANNING_ABSENT_RANKS_H_
