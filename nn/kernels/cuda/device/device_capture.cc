// The part of CudaDevice that captures and launches graphs.

#include <functional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/cuda/cuda_status.h"
#include "nn/kernels/cuda/device/cuda_device.h"
#include "nn/kernels/cuda/device/cuda_graph.h"

namespace troupe::nn::cuda {
namespace {

using base::CudaStatus;

// Limit on the calls of work that has not enqueued all. A library that has to
// connect first takes many calls, but earlier steps have connected by now.
constexpr int kCallsInCapture = 1'000'000;

// Returns whether the queue forks from kCompute in a capture.
bool IsFork(Queue queue) { return queue >= Queue::kComm; }

// One recording of a CUDA event with timing enabled.
class CudaMoment final : public DeviceMoment {
 public:
  explicit CudaMoment(cudaEvent_t event) : event_(event) {}
  ~CudaMoment() override { cudaEventDestroy(event_); }
  CudaMoment(const CudaMoment&) = delete;
  CudaMoment& operator=(const CudaMoment&) = delete;

  std::optional<double> SecondsSince(
      const DeviceMoment& earlier) const override {
    float ms = 0;
    if (cudaEventQuery(event_) == cudaSuccess &&
        cudaEventElapsedTime(&ms,
                             static_cast<const CudaMoment&>(earlier).event_,
                             event_) == cudaSuccess) {
      return ms * 1e-3;
    }
    cudaGetLastError();  // clears "not ready", which is no error
    return std::nullopt;
  }

 private:
  const cudaEvent_t event_;
};

}  // namespace

class CudaDevice::Graph final : public DeviceGraph {
 public:
  Graph(CudaDevice* device, std::shared_ptr<GraphExecutable> graph)
      : device_(*device), graph_(std::move(graph)) {}
  absl::Status Launch() override { return device_.Launch(graph_); }

 private:
  CudaDevice& device_;
  const std::shared_ptr<GraphExecutable> graph_;
};

absl::Status CudaDevice::MayRecord(Queue queue) {
  if (!capturing()) return absl::OkStatus();
  if (capture_->status().ok()) capture_->NoteWork(queue);
  return capture_->status();
}

void CudaDevice::FailCapture(const absl::Status& why) {
  if (capturing()) capture_->Fail(why);
}

absl::Status CudaDevice::BeginCapture() {
  TROUPE_CHECK(!capturing(), "one capture at a time");
  MakeCurrent();
  if (broken_) return status_;
  GraphCapture::Setup setup = {streams_, events_, pools_.source(), {}};
  for (Queue queue : queues_.list()) {
    if (Of(queue).held()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "cuda:", ordinal(),
          " waits for the host's work; wait for that before BeginCapture()"));
    }
    if (IsFork(queue)) setup.forks.push_back(queue);
  }
  // The graph allocates its own memory for the step, so the blocks that earlier
  // steps left in the cache are released first.
  allocator().ReleaseCached();
  TROUPE_ASSIGN_OR_RETURN(capture_, GraphCapture::Begin(std::move(setup)));
  for (Queue queue : queues_.list()) {
    if (Allocator* pool = capture_->allocator(queue)) {
      pools_.Of(queue).UseInstead(pool);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<DeviceGraph>> CudaDevice::EndCapture() {
  if (!capturing()) {
    return absl::FailedPreconditionError(
        "no capture is going on; call BeginCapture() first");
  }
  MakeCurrent();
  for (Queue queue : queues_.list()) pools_.Of(queue).UseInstead(nullptr);
  // An event that completes may call this device again.
  const std::unique_ptr<GraphCapture> capture = std::move(capture_);
  TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<GraphExecutable> graph,
                          capture->End());
  return std::make_unique<Graph>(this, std::move(graph));
}

void CudaDevice::JoinQueues() {
  for (Queue queue : queues_.list()) {
    if (!IsFork(queue)) continue;
    std::uint64_t& joined = joined_[static_cast<int>(queue)];
    if (!Of(queue).held() && Of(queue).given() == joined) continue;
    Wait(Queue::kCompute, Record(queue));
    joined = Of(queue).given();
  }
}

absl::Status CudaDevice::Launch(const std::shared_ptr<GraphExecutable>& graph) {
  if (capturing()) {
    FailCapture(
        absl::FailedPreconditionError("a graph within a graph is not recorded; "
                                      "call EndCapture() before Launch()"));
    return capture_->status();
  }
  JoinQueues();
  const absl::Status given =
      Give(Queue::kCompute, "Graph",
           [graph, stream = stream(Queue::kCompute)]() -> absl::Status {
             return CudaStatus(cudaGraphLaunch(graph->exec(), stream),
                               "cudaGraphLaunch");
           });
  TROUPE_RETURN_IF_ERROR(Check(given));
  const base::Event done = Record(Queue::kCompute);
  for (Queue queue : queues_.list()) {
    if (IsFork(queue) && graph->uses(queue)) Wait(queue, done);
  }
  return status_;
}

absl::Status CudaDevice::EnqueueInCapture(
    Queue queue, const char* name, const std::function<bool(void*)>& work) {
  Of(queue).Note(name);
  for (int call = 0; call < kCallsInCapture; ++call) {
    if (work(stream(queue))) return absl::OkStatus();
    std::this_thread::yield();
  }
  FailCapture(absl::DeadlineExceededError(
      absl::StrCat(name,
                   " does not come to its end while it is recorded; call it "
                   "before BeginCapture()")));
  return capture_->status();
}

std::unique_ptr<DeviceMoment> CudaDevice::Mark(Queue queue) {
  MakeCurrent();
  if (capturing() || !OpenQueue(queue) || Of(queue).held()) return nullptr;
  cudaEvent_t event = nullptr;
  if (cudaEventCreate(&event) != cudaSuccess) {
    cudaGetLastError();
    return nullptr;
  }
  auto moment = std::make_unique<CudaMoment>(event);
  const absl::Status recorded =
      CudaStatus(cudaEventRecord(event, stream(queue)), "cudaEventRecord");
  return Check(recorded).ok() ? std::move(moment) : nullptr;
}

}  // namespace troupe::nn::cuda
