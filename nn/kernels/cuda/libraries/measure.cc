#include "nn/kernels/cuda/libraries/measure.h"

#include <algorithm>

#include "base/check.h"
#include "base/cuda/cuda_status.h"

namespace troupe::nn::cuda {
namespace {

using base::CudaStatus;

// Times the work that is enqueued between Begin() and End().
class Timer {
 public:
  explicit Timer(cudaStream_t stream) : stream_(stream) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() {
    for (cudaEvent_t event : {begin_, end_}) {
      if (event != nullptr) (void)cudaEventDestroy(event);
    }
  }

  absl::Status Open() {
    TROUPE_RETURN_IF_ERROR(
        CudaStatus(cudaEventCreate(&begin_), "cudaEventCreate"));
    return CudaStatus(cudaEventCreate(&end_), "cudaEventCreate");
  }
  absl::Status Begin() {
    return CudaStatus(cudaEventRecord(begin_, stream_), "cudaEventRecord");
  }
  // Waits for the work and returns milliseconds.
  absl::StatusOr<float> End() {
    TROUPE_RETURN_IF_ERROR(
        CudaStatus(cudaEventRecord(end_, stream_), "cudaEventRecord"));
    TROUPE_RETURN_IF_ERROR(
        CudaStatus(cudaEventSynchronize(end_), "measuring an algorithm"));
    float ms = 0;
    TROUPE_RETURN_IF_ERROR(CudaStatus(cudaEventElapsedTime(&ms, begin_, end_),
                                      "cudaEventElapsedTime"));
    return ms;
  }

 private:
  const cudaStream_t stream_;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

// Returns the mean milliseconds of `runs` runs; negative if the candidate
// failed.
absl::StatusOr<float> TimeRuns(Timer& timer, int runs,
                               const std::function<absl::Status()>& run) {
  TROUPE_RETURN_IF_ERROR(timer.Begin());
  bool failed = false;
  for (int i = 0; i < runs && !failed; ++i) failed = !run().ok();
  TROUPE_ASSIGN_OR_RETURN(const float ms, timer.End());
  return failed ? -1.0f : ms / static_cast<float>(runs);
}

// Returns `count` numbers in [-1, 1), the same in every call.
template <typename T>
std::vector<char> Pattern(std::size_t count) {
  std::vector<T> numbers(count);
  std::uint64_t state = 1;
  for (T& number : numbers) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto bits = static_cast<std::int64_t>(state >> 40);  // 24 bits
    number = FromF64<T>(static_cast<double>(bits - (1 << 23)) / (1 << 23));
  }
  const char* bytes = reinterpret_cast<const char*>(numbers.data());
  return std::vector<char>(bytes, bytes + count * sizeof(T));
}

std::vector<char> Pattern(DType dtype, std::size_t count) {
  switch (dtype) {
    case DType::kBF16:
      return Pattern<bf16>(count);
    case DType::kF16:
      return Pattern<f16>(count);
    default:
      return Pattern<float>(count);
  }
}

}  // namespace

absl::StatusOr<void*> SampleMemory::Bytes(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  TROUPE_ASSIGN_OR_RETURN(StoragePtr block, allocator_.Allocate(bytes));
  blocks_.push_back(std::move(block));
  return blocks_.back()->data();
}

absl::StatusOr<void*> SampleMemory::Numbers(DType dtype, std::int64_t elems) {
  TROUPE_ASSIGN_OR_RETURN(
      void* const data, Bytes(static_cast<std::size_t>(elems) * SizeOf(dtype)));
  TROUPE_RETURN_IF_ERROR(Fill(dtype, elems, data));
  return data;
}

absl::StatusOr<Tensor> SampleMemory::Numbers(const Shape& shape, DType dtype) {
  TROUPE_ASSIGN_OR_RETURN(Tensor t, Tensor::Create(shape, dtype, allocator_));
  TROUPE_RETURN_IF_ERROR(Fill(dtype, t.numel(), t.device_data()));
  return t;
}

absl::Status SampleMemory::Fill(DType dtype, std::int64_t elems, void* data) {
  constexpr std::size_t kPatternElems = 1 << 15;
  const std::size_t bytes = static_cast<std::size_t>(elems) * SizeOf(dtype);
  const std::vector<char> pattern =
      Pattern(dtype, std::min(kPatternElems, static_cast<std::size_t>(elems)));
  // From pageable memory, the call returns only when the pattern has been read.
  TROUPE_RETURN_IF_ERROR(
      CudaStatus(cudaMemcpyAsync(data, pattern.data(), pattern.size(),
                                 cudaMemcpyHostToDevice, stream_),
                 "filling memory to measure in"));
  for (std::size_t done = pattern.size(); done < bytes;) {
    const std::size_t more = std::min(done, bytes - done);
    TROUPE_RETURN_IF_ERROR(
        CudaStatus(cudaMemcpyAsync(static_cast<char*>(data) + done, data, more,
                                   cudaMemcpyDeviceToDevice, stream_),
                   "filling memory to measure in"));
    done += more;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<CandidateTimes>> TimeCandidates(
    int count, const std::function<absl::Status(int)>& run,
    cudaStream_t stream) {
  constexpr int kRounds = 5;
  Timer timer(stream);
  TROUPE_RETURN_IF_ERROR(timer.Open());
  std::vector<CandidateTimes> times(count);
  std::vector<int> runs(count, 1);
  // The first round loads kernels and fills caches. It only decides how many
  // runs a sample has, and whether a candidate works; later rounds are samples.
  for (int round = 0; round <= kRounds; ++round) {
    for (int i = 0; i < count; ++i) {
      if (runs[i] == 0) continue;
      const auto once = [&] { return run(i); };
      TROUPE_ASSIGN_OR_RETURN(const float ms, TimeRuns(timer, runs[i], once));
      if (ms < 0) {
        runs[i] = 0;
        times[i].clear();
      } else if (round == 0) {
        runs[i] = RunsPerSample(ms);
      } else {
        times[i].push_back(ms);
      }
    }
  }
  return times;
}

absl::StatusOr<bool> IsCapturing(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  TROUPE_RETURN_IF_ERROR(CudaStatus(cudaStreamIsCapturing(stream, &status),
                                    "cudaStreamIsCapturing"));
  return status != cudaStreamCaptureStatusNone;
}

}  // namespace troupe::nn::cuda
