#include "tests/base/cuda/emulated/two_rank_step.h"

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "tests/base/cuda/emulated/two_rank_kernels.h"

namespace emulated_cuda_test {
namespace {

constexpr std::size_t kBytes = kN * sizeof(float);

struct Rank {
  int device = 0;
  cudaStream_t compute{};
  cudaStream_t comm{};
  ncclComm_t nccl{};
  // Device memory.
  float* w[kBuckets];
  float* d_w[kBuckets];
  float* h[kBuckets + 1];
  float* d_h[kBuckets + 1];
  float* target;
  float* rate;
  float* loss;
  // Pinned memory: kN inputs and the learning rate; the losses of the last
  // steps.
  float* batch;
  float* losses[kStepsLate];
  cudaEvent_t batch_read;
  cudaEvent_t rate_read;
  cudaEvent_t loss_written[kStepsLate];
  cudaEvent_t gradient[kBuckets];
  cudaEvent_t updated[kBuckets];
  cudaEvent_t ready;
  cudaEvent_t cleared;
  cudaEvent_t joined;
  cudaGraphExec_t graph{};
};

class Training {
 public:
  explicit Training(const StepOptions& options) : options_(options) {}
  StepResult Run();

 private:
  void Check(cudaError_t error) { failed_ |= error != cudaSuccess; }
  void Check(const absl::Status& status) { failed_ |= !status.ok(); }
  void Check(ncclResult_t result) {
    failed_ |= result != ncclSuccess && result != ncclInProgress;
  }
  bool Has(Bug bug) const { return options_.bug == bug; }

  // Calls f(rank) for each, with its device current.
  template <typename F>
  void ForEach(F f) {
    for (Rank& rank : ranks_) {
      Check(cudaSetDevice(rank.device));
      f(rank);
    }
  }
  template <typename F>
  void ForEachEvent(Rank& r, F f) {
    for (int b = 0; b < kBuckets; ++b) f(r.gradient[b]), f(r.updated[b]);
    for (cudaEvent_t& event : r.loss_written) f(event);
    for (cudaEvent_t* event :
         {&r.batch_read, &r.rate_read, &r.ready, &r.cleared, &r.joined}) {
      f(*event);
    }
  }
  template <typename F>
  void ForEachArray(Rank& r, F f) {
    for (float*& p : r.w) f(p, kN);
    for (float*& p : r.h) f(p, kN);
    for (float*& p : r.d_h) f(p, kN);
    f(r.target, kN), f(r.rate, 1), f(r.loss, 1);
    if (options_.graph) {
      for (float*& p : r.d_w) f(p, kN);
    }
  }
  void Allocate(float*& p, std::size_t count) {
    Check(cudaMalloc(reinterpret_cast<void**>(&p), count * sizeof(float)));
  }
  void AllocatePinned(float*& p, std::size_t count) {
    Check(cudaMallocHost(reinterpret_cast<void**>(&p), count * sizeof(float)));
  }

  void Create(Rank& r);
  void Destroy(Rank& r);
  void Connect();
  void AwaitComms();
  void CaptureGraphs();
  void Load(Rank& r, int step);
  void EnqueueForward(Rank& r, int step);
  void EnqueueBackward(Rank& r, int bucket);
  void EnqueueReduce(int bucket);
  void EnqueueUpdate(Rank& r, int bucket, int step);
  void EnqueueEnd(Rank& r);
  void EnqueueStep(int step);
  void ReadLosses(int step, StepResult* result);
  void ReadParameters(StepResult* result);

  const StepOptions options_;
  Rank ranks_[kRanks];
  bool failed_ = false;
};

void Training::Create(Rank& r) {
  Check(cudaStreamCreateWithFlags(&r.compute, cudaStreamNonBlocking));
  Check(cudaStreamCreateWithPriority(&r.comm, cudaStreamNonBlocking, -1));
  ForEachArray(r, [&](float*& p, int count) { Allocate(p, count); });
  ForEachEvent(r, [&](cudaEvent_t& event) {
    Check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  });
  AllocatePinned(r.batch, kN + 1);
  for (float*& p : r.losses) AllocatePinned(p, 1);
  std::vector<float> first(kN);
  const auto put = [&](float* to) {
    Check(cudaMemcpyAsync(to, first.data(), kBytes, cudaMemcpyHostToDevice,
                          r.compute));
  };
  for (int i = 0; i < kN; ++i) {
    first[i] = 0.25f + 0.001f * static_cast<float>(i);
  }
  for (float* p : r.w) put(p);
  for (int i = 0; i < kN; ++i) {
    first[i] = std::fabs(0.02f * static_cast<float>(i) - 0.5f);
  }
  put(r.target);
}

void Training::Destroy(Rank& r) {
  Check(cudaDeviceSynchronize());
  ForEachArray(r, [&](float* p, int) { Check(cudaFree(p)); });
  ForEachEvent(r, [&](cudaEvent_t event) { Check(cudaEventDestroy(event)); });
  Check(cudaFreeHost(r.batch));
  for (float* p : r.losses) Check(cudaFreeHost(p));
  if (r.graph != nullptr) Check(cudaGraphExecDestroy(r.graph));
  Check(ncclCommDestroy(r.nccl));
  Check(cudaStreamDestroy(r.compute));
  Check(cudaStreamDestroy(r.comm));
}

void Training::Connect() {
  ncclUniqueId id;
  Check(ncclGetUniqueId(&id));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = options_.nonblocking ? 0 : 1;
  Check(ncclGroupStart());
  ForEach([&](Rank& r) {
    Check(ncclCommInitRankConfig(&r.nccl, kRanks, id, r.device, &config));
  });
  Check(ncclGroupEnd());
  AwaitComms();
}

// Waits until the calls of all non-blocking communicators have completed.
void Training::AwaitComms() {
  for (Rank& r : ranks_) {
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress && !failed_) {
      Check(ncclCommGetAsyncError(r.nccl, &state));
    }
    Check(state);
  }
}

// Copies the input of a step from pinned memory, and the learning rate on the
// stream that reads it.
void Training::Load(Rank& r, int step) {
  if (!Has(Bug::kSlotReusedEarly)) {
    Check(cudaEventSynchronize(r.batch_read));
    Check(cudaEventSynchronize(r.rate_read));
  }
  for (int i = 0; i < kN; ++i) r.batch[i] = BatchOf(r.device, step, i);
  r.batch[kN] = RateOf(step);
  Check(cudaMemcpyAsync(r.h[0], r.batch, kBytes, cudaMemcpyHostToDevice,
                        r.compute));
  Check(cudaEventRecord(r.batch_read, r.compute));
  if (Has(Bug::kStackPointer)) return;
  const cudaStream_t reader = options_.graph ? r.compute : r.comm;
  Check(cudaMemcpyAsync(r.rate, r.batch + kN, sizeof(float),
                        cudaMemcpyHostToDevice, reader));
  Check(cudaEventRecord(r.rate_read, reader));
}

void Training::EnqueueForward(Rank& r, int step) {
  if (Has(Bug::kStackPointer)) {
    const float rate = RateOf(step);
    Check(cudaMemcpyAsync(r.rate, &rate, sizeof rate, cudaMemcpyHostToDevice,
                          options_.graph ? r.compute : r.comm));
  }
  if (!options_.graph) {
    for (float*& p : r.d_w) {
      Check(cudaMallocAsync(reinterpret_cast<void**>(&p), kBytes, r.compute));
    }
  }
  // comm waits until compute has allocated the gradients; in a graph, also
  // until it has copied the learning rate.
  Check(cudaEventRecord(r.ready, r.compute));
  if (options_.graph || !Has(Bug::kUsedBeforeMalloc)) {
    Check(cudaStreamWaitEvent(r.comm, r.ready, 0));
  }
  for (float* p : r.d_w) Check(cudaMemsetAsync(p, 0, kBytes, r.comm));
  Check(cudaEventRecord(r.cleared, r.comm));
  for (int b = 0; b < kBuckets; ++b) {
    if (!options_.graph && !Has(Bug::kNoWaitForParameter)) {
      Check(cudaStreamWaitEvent(r.compute, r.updated[b], 0));
    }
    Check(Forward(r.w[b], r.h[b], r.h[b + 1], kN, r.compute));
  }
  Check(Loss(r.h[kBuckets], r.target, r.d_h[kBuckets], r.loss, kN, r.compute));
  Check(cudaStreamWaitEvent(r.compute, r.cleared, 0));
}

void Training::EnqueueBackward(Rank& r, int b) {
  const cudaEvent_t event = r.gradient[Has(Bug::kWrongEvent) ? 0 : b];
  if (Has(Bug::kEventTooSoon)) Check(cudaEventRecord(event, r.compute));
  Check(Backward(r.w[b], r.h[b], r.d_h[b + 1], r.d_w[b], r.d_h[b], kN,
                 r.compute));
  if (!Has(Bug::kEventTooSoon)) Check(cudaEventRecord(event, r.compute));
  if (!Has(Bug::kNoWaitForGradient)) {
    Check(cudaStreamWaitEvent(r.comm, r.gradient[b], 0));
  }
}

void Training::EnqueueReduce(int bucket) {
  Check(ncclGroupStart());
  ForEach([&](Rank& r) {
    const bool swaps = Has(Bug::kSwappedOrder) && r.device == 1 && bucket > 0;
    float* const gradient = r.d_w[swaps ? kBuckets - bucket : bucket];
    Check(ncclAllReduce(gradient, gradient, kN, ncclFloat32, ncclSum, r.nccl,
                        r.comm));
  });
  Check(ncclGroupEnd());
}

void Training::EnqueueUpdate(Rank& r, int b, int step) {
  const cudaStream_t stream = Has(Bug::kNullStream) ? nullptr : r.comm;
  Check(Has(Bug::kScalarByValue)
            ? UpdateByValue(r.w[b], r.d_w[b], RateOf(step), kN, stream)
            : Update(r.w[b], r.d_w[b], r.rate, kN, stream));
  Check(cudaEventRecord(r.updated[b], r.comm));
}

void Training::EnqueueEnd(Rank& r) {
  if (options_.graph) {
    Check(cudaEventRecord(r.joined, r.comm));
    Check(cudaStreamWaitEvent(r.compute, r.joined, 0));
    return;
  }
  for (float* p : r.d_w) {
    Check(cudaFreeAsync(p, Has(Bug::kFreedEarly) ? r.compute : r.comm));
  }
}

// Enqueues one step of all ranks, either eagerly or into a capture.
void Training::EnqueueStep(int step) {
  ForEach([&](Rank& r) { EnqueueForward(r, step); });
  for (int bucket = kBuckets - 1; bucket >= 0; --bucket) {
    ForEach([&](Rank& r) { EnqueueBackward(r, bucket); });
    EnqueueReduce(bucket);
    if (!Has(Bug::kInProgressIgnored)) AwaitComms();
    ForEach([&](Rank& r) { EnqueueUpdate(r, bucket, step); });
    if (Has(Bug::kInProgressIgnored)) AwaitComms();  // too late
  }
  ForEach([&](Rank& r) { EnqueueEnd(r); });
}

void Training::CaptureGraphs() {
  ForEach([&](Rank& r) {
    Check(cudaStreamBeginCapture(r.compute, cudaStreamCaptureModeThreadLocal));
  });
  EnqueueStep(/*step=*/0);
  cudaGraph_t graphs[kRanks] = {};
  ForEach([&](Rank& r) {
    Check(cudaStreamEndCapture(r.compute, &graphs[r.device]));
  });
  if (failed_) return;
  ForEach([&](Rank& r) {
    Check(cudaGraphInstantiate(&r.graph, graphs[r.device], 0));
    Check(cudaGraphDestroy(graphs[r.device]));
  });
}

void Training::ReadLosses(int step, StepResult* result) {
  for (Rank& r : ranks_) {
    const int slot = step % kStepsLate;
    if (!Has(Bug::kLossReadEarly)) {
      Check(cudaEventSynchronize(r.loss_written[slot]));
    }
    result->losses[r.device].push_back(*r.losses[slot]);
  }
}

void Training::ReadParameters(StepResult* result) {
  ForEach([&](Rank& r) {
    Check(cudaStreamSynchronize(r.comm));
    Check(cudaStreamSynchronize(r.compute));
    std::vector<float>& parameters = result->parameters[r.device];
    parameters.resize(kBuckets * kN);
    for (int b = 0; b < kBuckets && !failed_; ++b) {
      Check(cudaMemcpyAsync(parameters.data() + b * kN, r.w[b], kBytes,
                            cudaMemcpyDeviceToHost, r.comm));
    }
  });
}

StepResult Training::Run() {
  StepResult result;
  for (int r = 0; r < kRanks; ++r) ranks_[r].device = r;
  ForEach([&](Rank& r) { Create(r); });
  Connect();
  if (options_.graph) CaptureGraphs();
  for (int step = 0; step < kSteps && !failed_; ++step) {
    if (step >= kStepsLate) ReadLosses(step - kStepsLate, &result);
    ForEach([&](Rank& r) { Load(r, step); });
    if (!options_.graph) EnqueueStep(step);
    ForEach([&](Rank& r) {
      const int slot = step % kStepsLate;
      if (options_.graph) Check(cudaGraphLaunch(r.graph, r.compute));
      Check(cudaMemcpyAsync(r.losses[slot], r.loss, sizeof(float),
                            cudaMemcpyDeviceToHost, r.compute));
      Check(cudaEventRecord(r.loss_written[slot], r.compute));
    });
  }
  for (int step = kSteps - kStepsLate; step < kSteps && !failed_; ++step) {
    ReadLosses(step, &result);
  }
  ReadParameters(&result);
  ForEach([&](Rank& r) { Destroy(r); });
  result.has_failed = failed_;
  return result;
}

}  // namespace

StepResult TrainTwoRanks(const StepOptions& options) {
  return Training(options).Run();
}

}  // namespace emulated_cuda_test
