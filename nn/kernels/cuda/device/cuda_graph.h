// CUDA graphs behind nn/kernels/device_graph.h: records the work that the
// streams of a device are given, and launches it again.
//
//   TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<GraphCapture> capture,
//                           GraphCapture::Begin({streams, events, memory}));
//   base::Event ready = capture->Record(Queue::kCompute);
//   capture->Wait(Queue::kComm, ready);
//   TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<GraphExecutable> graph,
//                           capture->End());
//   cudaGraphLaunch(graph->exec(), compute);
//
// A capture begins on the compute stream. All open communication streams fork
// from it at once and join it at the end, so none of their work can run instead
// of being recorded; a queue that was never used is not recorded. The streams
// for copies take no part: they copy the next batch while a graph runs.
//
// Memory. Allocations during a capture come from a pool of the graph's own,
// over the device's source, and stay there until the graph is destroyed: no
// other code gets a block that a replay writes to. The pool has a part for each
// queue; blocks are reused in the order of that queue.
//
// The capture mode is thread-local: a call of this thread that CUDA cannot
// record ends the capture with an error; other threads may call CUDA freely.
//
// Threads: the device's; memory may be released in any.

#ifndef NN_KERNELS_CUDA_DEVICE_CUDA_GRAPH_H_
#define NN_KERNELS_CUDA_DEVICE_CUDA_GRAPH_H_

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/event.h"
#include "nn/kernels/cuda/device/event_pool.h"
#include "nn/kernels/cuda/device/streams.h"
#include "nn/kernels/device_queues.h"
#include "nn/tensor/caching_allocator.h"
#include "nn/tensor/memory_source.h"

namespace troupe::nn::cuda {

// The memory behind a graph's pool. It can allocate during a capture, and keeps
// freed blocks until Release().
class GraphMemory final : public MemorySource {
 public:
  explicit GraphMemory(std::shared_ptr<MemorySource> source)
      : source_(std::move(source)) {}
  ~GraphMemory() override { Release(); }

  void* Allocate(std::size_t bytes) override;
  void Free(void* block, std::size_t bytes) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool host_accessible() const override { return false; }
  std::optional<std::size_t> bytes_free() const override {
    return source_->bytes_free();
  }

  // Frees the kept blocks; later blocks are freed at once. Called when the
  // graph is destroyed.
  void Release() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const std::shared_ptr<MemorySource> source_;
  absl::Mutex mutex_;
  bool released_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::pair<void*, std::size_t>> kept_ ABSL_GUARDED_BY(mutex_);
};

// A flag for each queue: whether it had work in a capture.
using QueueFlags = std::array<bool, kNumQueues>;
// The memory pool of each recorded queue; null for other queues.
using GraphPools = std::array<std::unique_ptr<CachingAllocator>, kNumQueues>;

// A recorded graph that can be launched, and its memory.
class GraphExecutable {
 public:
  GraphExecutable(cudaGraphExec_t exec, const QueueFlags& used,
                  std::shared_ptr<GraphMemory> memory, GraphPools pools)
      : exec_(exec),
        used_(used),
        memory_(std::move(memory)),
        pools_(std::move(pools)) {}
  ~GraphExecutable();
  GraphExecutable(const GraphExecutable&) = delete;
  GraphExecutable& operator=(const GraphExecutable&) = delete;

  cudaGraphExec_t exec() const { return exec_; }
  bool uses(Queue queue) const { return used_[static_cast<int>(queue)]; }

 private:
  const cudaGraphExec_t exec_;
  const QueueFlags used_;
  const std::shared_ptr<GraphMemory> memory_;
  GraphPools pools_;
};

class GraphCapture {
 public:
  struct Setup {
    std::shared_ptr<const Streams> streams;
    std::shared_ptr<EventPool> events;
    std::shared_ptr<MemorySource> memory;  // the device's source
    std::vector<Queue> forks = {};         // open communication queues
  };

  // Begins a capture. The device of the streams must be the current one.
  static absl::StatusOr<std::unique_ptr<GraphCapture>> Begin(Setup setup);
  // Abandons a capture that was not ended.
  ~GraphCapture();
  GraphCapture(const GraphCapture&) = delete;
  GraphCapture& operator=(const GraphCapture&) = delete;

  // The memory for recorded work of `queue`; null if it is not recorded.
  Allocator* allocator(Queue queue) {
    return pools_[static_cast<int>(queue)].get();
  }

  // The first failure, after which no work may be given.
  const absl::Status& status() const { return status_; }
  void Fail(const absl::Status& why) { status_.Update(why); }
  // Notes that `queue` is given work; fails the capture if it is not recorded.
  void NoteWork(Queue queue);

  base::Event Record(Queue queue);
  void Wait(Queue queue, const base::Event& event);

  // Ends the capture; called once. Streams are no longer recorded afterwards,
  // also if it returns an error.
  absl::StatusOr<std::shared_ptr<GraphExecutable>> End();

 private:
  class Mark;

  explicit GraphCapture(Setup setup);
  bool Records(Queue queue) const {
    return pools_[static_cast<int>(queue)] != nullptr;
  }
  absl::Status Fork();
  absl::Status Join();
  absl::StatusOr<cudaGraph_t> EndStreams();
  cudaStream_t Of(Queue queue) const { return setup_.streams->Of(queue); }
  // Makes later work of `to` wait for the work that `from` was given so far.
  absl::Status Chain(cudaStream_t from, cudaStream_t to);
  // Returns OK if a wait for `event`, which is not of this capture, needs no
  // node in the graph; otherwise an error, because it cannot be recorded.
  absl::Status CheckOutside(const base::Event& event) const;

  const Setup setup_;
  const std::shared_ptr<GraphMemory> memory_;
  GraphPools pools_;
  absl::Status status_;
  QueueFlags used_ = {};
  std::vector<base::Event> events_;  // recorded during the capture
  bool open_ = false;
};

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_DEVICE_CUDA_GRAPH_H_
