// Stands in for the other ranks while one thread measures a part of the model:
// nothing reduces its gradients, and sums and gathers of layers along tp have
// the thread's own terms alone; they are counted. A chunk takes it as its
// listener, and its axes() as the collectives of layers, which copy in the
// compute queue of the chunk's kernels.
//
// Threads: one.

#ifndef ACTORS_PLANNING_ABSENT_RANKS_H_
#define ACTORS_PLANNING_ABSENT_RANKS_H_

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "actors/chunks/chunk.h"
#include "base/check.h"
#include "nn/collectives.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/kernels.h"
#include "pipeline/cut_search.h"

namespace troupe::actors {

class AbsentRanks : public Chunk::Listener, private nn::Collectives {
 public:
  // `tp`: number of ranks along tp.
  explicit AbsentRanks(int tp) : tp_(tp), axes_{{"tp", this}} {}
  AbsentRanks(const AbsentRanks&) = delete;
  AbsentRanks& operator=(const AbsentRanks&) = delete;

  // Takes the kernels of the chunks, which outlive it.
  void UseKernels(nn::Kernels* kernels) { kernels_ = kernels; }

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
    Count(range, /*part=*/1);
    return absl::OkStatus();
  }
  // The other ranks have what this one has.
  absl::Status AllGather(const nn::Tensor& input,
                         const nn::Tensor& range) override {
    Count(range, /*part=*/0.5);
    for (int rank = 0; rank < tp_; ++rank) {
      Copy(input, range.FlatView(rank * input.numel(), input.shape()));
    }
    return absl::OkStatus();
  }
  absl::Status ReduceScatter(nn::ReduceOp, const nn::Tensor& input,
                             const nn::Tensor& range) override {
    Count(input, /*part=*/0.5);
    Copy(input.FlatView(0, range.shape()), range);
    return absl::OkStatus();
  }

  // `part`: bytes that it sends, relative to a sum of the tensor.
  void Count(const nn::Tensor& whole, double part) {
    ++sums_.count;
    sums_.bytes += part * static_cast<double>(whole.bytes());
  }

  void Copy(const nn::Tensor& from, const nn::Tensor& to) {
    TROUPE_CHECK(kernels_ != nullptr, "layers run after UseKernels()");
    nn::CopyBytes(*kernels_, nn::Queue::kCompute, from, to);
  }

  nn::Kernels* kernels_ = nullptr;
  const int tp_;
  const std::vector<nn::AxisCollectives> axes_;
  pipeline::LayerSums sums_;
};

}  // namespace troupe::actors

#endif  // ACTORS_PLANNING_ABSENT_RANKS_H_
