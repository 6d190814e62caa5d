#include "nn/kernels/cuda/device/cuda_graph.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/cuda/cuda_status.h"

namespace troupe::nn::cuda {
namespace {

using base::CudaStatus;

CachingAllocator::Options PoolOver(int ordinal,
                                   std::shared_ptr<MemorySource> memory) {
  CachingAllocator::Options options;
  options.cached_bytes_max = std::numeric_limits<std::size_t>::max();
  options.device = {DeviceType::kCuda, ordinal};
  options.source = std::move(memory);
  return options;
}

}  // namespace

void* GraphMemory::Allocate(std::size_t bytes) {
  // The relaxed mode allows cudaMalloc during a capture. The allocation is not
  // part of the recorded work.
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  if (cudaThreadExchangeStreamCaptureMode(&mode) != cudaSuccess) return nullptr;
  void* const block = source_->Allocate(bytes);
  cudaThreadExchangeStreamCaptureMode(&mode);
  return block;
}

void GraphMemory::Free(void* block, std::size_t bytes) {
  {
    absl::MutexLock lock(&mutex_);
    if (!released_) return kept_.emplace_back(block, bytes), void();
  }
  source_->Free(block, bytes);
}

void GraphMemory::Release() {
  std::vector<std::pair<void*, std::size_t>> kept;
  {
    absl::MutexLock lock(&mutex_);
    released_ = true;
    kept.swap(kept_);
  }
  for (const auto& [block, bytes] : kept) source_->Free(block, bytes);
}

GraphExecutable::~GraphExecutable() {
  if (exec_ != nullptr) cudaGraphExecDestroy(exec_);
  memory_->Release();
}

// The origin of an event that a capture recorded. Other queues of the same
// capture find the recording by it; other code does not recognize it.
class GraphCapture::Mark final : public base::EventOrigin {
 public:
  Mark(const GraphCapture* capture, std::shared_ptr<const EventMark> mark)
      : capture(capture), mark(std::move(mark)) {}
  const GraphCapture* const capture;
  const std::shared_ptr<const EventMark> mark;
};

GraphCapture::GraphCapture(Setup setup)
    : setup_(std::move(setup)),
      memory_(std::make_shared<GraphMemory>(setup_.memory)) {
  std::vector<Queue> recorded = setup_.forks;
  recorded.push_back(Queue::kCompute);
  for (Queue queue : recorded) {
    pools_[static_cast<int>(queue)] = std::make_unique<CachingAllocator>(
        PoolOver(setup_.streams->ordinal(), memory_));
  }
}

absl::StatusOr<std::unique_ptr<GraphCapture>> GraphCapture::Begin(Setup setup) {
  std::unique_ptr<GraphCapture> capture(new GraphCapture(std::move(setup)));
  const absl::Status begun =
      CudaStatus(cudaStreamBeginCapture(capture->Of(Queue::kCompute),
                                        cudaStreamCaptureModeThreadLocal),
                 "cudaStreamBeginCapture");
  if (!begun.ok()) {
    cudaGetLastError();  // clears the error for the check of the next launch
    return begun;
  }
  capture->open_ = true;
  TROUPE_RETURN_IF_ERROR(capture->Fork());
  return capture;
}

GraphCapture::~GraphCapture() {
  if (open_) End().IgnoreError();
}

absl::Status GraphCapture::Chain(cudaStream_t from, cudaStream_t to) {
  TROUPE_ASSIGN_OR_RETURN(const std::shared_ptr<const EventMark> mark,
                          EventPool::Record(setup_.events, from));
  return CudaStatus(cudaStreamWaitEvent(to, mark->event(), /*flags=*/0),
                    "cudaStreamWaitEvent");
}

absl::Status GraphCapture::Fork() {
  for (Queue queue : setup_.forks) {
    TROUPE_RETURN_IF_ERROR(Chain(Of(Queue::kCompute), Of(queue)));
  }
  return absl::OkStatus();
}

absl::Status GraphCapture::Join() {
  for (Queue queue : setup_.forks) {
    TROUPE_RETURN_IF_ERROR(Chain(Of(queue), Of(Queue::kCompute)));
  }
  return absl::OkStatus();
}

void GraphCapture::NoteWork(Queue queue) {
  used_[static_cast<int>(queue)] = true;
  if (Records(queue)) return;
  Fail(absl::FailedPreconditionError(
      "the queue of copies, or one that was never used before, is given work, "
      "which is not recorded; give it that work before BeginCapture()"));
}

base::Event GraphCapture::Record(Queue queue) {
  const base::Event event = base::Event::Make();
  events_.push_back(event);
  if (!Records(queue)) NoteWork(queue);
  if (!status_.ok()) return event;
  auto mark = EventPool::Record(setup_.events, Of(queue));
  if (mark.ok()) {
    event.SetOrigin(std::make_shared<const Mark>(this, *std::move(mark)));
  } else {
    Fail(mark.status());
  }
  return event;
}

// Each launch runs after all work that the recorded streams of this device were
// given before the capture. The streams for copies are not ordered with it.
absl::Status GraphCapture::CheckOutside(const base::Event& event) const {
  const std::shared_ptr<const EventMark> mark = EventMark::Of(event);
  bool known = mark != nullptr && mark->stream() == Of(Queue::kCompute);
  for (Queue queue : setup_.forks) {
    known = known || (mark != nullptr && mark->stream() == Of(queue));
  }
  if (known) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "a queue waits for an event from outside of what is recorded: of the "
      "host, of copies, or of another device; wait for it before "
      "BeginCapture()");
}

void GraphCapture::Wait(Queue queue, const base::Event& event) {
  if (!Records(queue)) NoteWork(queue);
  if (!status_.ok()) return;
  if (event.ready()) return Fail(event.status());
  const auto mark = std::dynamic_pointer_cast<const Mark>(event.origin());
  if (mark == nullptr || mark->capture != this) {
    return Fail(CheckOutside(event));
  }
  if (mark->mark->stream() == Of(queue)) return;  // the stream is in order
  Fail(CudaStatus(
      cudaStreamWaitEvent(Of(queue), mark->mark->event(), /*flags=*/0),
      "cudaStreamWaitEvent"));
}

// Ends the capture of all streams, also if it has failed.
absl::StatusOr<cudaGraph_t> GraphCapture::EndStreams() {
  open_ = false;
  Fail(Join());
  cudaGraph_t graph = nullptr;
  Fail(CudaStatus(cudaStreamEndCapture(Of(Queue::kCompute), &graph),
                  "cudaStreamEndCapture"));
  if (status_.ok()) return graph;
  if (graph != nullptr) cudaGraphDestroy(graph);
  cudaGetLastError();  // clears the error for the check of the next launch
  return status_;
}

absl::StatusOr<std::shared_ptr<GraphExecutable>> GraphCapture::End() {
  const absl::StatusOr<cudaGraph_t> graph = EndStreams();
  cudaGraphExec_t exec = nullptr;
  if (graph.ok()) {
    Fail(CudaStatus(cudaGraphInstantiate(&exec, *graph, /*flags=*/0),
                    "cudaGraphInstantiate"));
    cudaGraphDestroy(*graph);
    if (!status_.ok()) cudaGetLastError();
  }
  for (const base::Event& event : std::exchange(events_, {})) {
    event.Complete(absl::OkStatus());
  }
  // Also frees the memory of a capture that failed.
  auto executable = std::make_shared<GraphExecutable>(exec, used_, memory_,
                                                      std::move(pools_));
  if (!status_.ok()) return status_;
  return executable;
}

}  // namespace troupe::nn::cuda
