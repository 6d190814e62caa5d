// What every function of the API begins with.
//
//     cudaError_t cudaStreamCreate(cudaStream_t* stream) {
//       EMULATED_CUDA_CALL();
//       ...
//       return cudaSuccess;
//     }
//
// The macro declares `call`: it takes the runtime's lock and hides the
// runtime's own accesses from ThreadSanitizer; at its end a few operations may
// run, by the seed. It returns an error at once inside an operation, for a call
// that is to fail (FailingCall), and when the current device is broken.

#ifndef BASE_CUDA_EMULATED_RUNTIME_API_CALL_H_
#define BASE_CUDA_EMULATED_RUNTIME_API_CALL_H_

#include <cuda_runtime_api.h>

#include <optional>

#include "base/cuda/emulated/runtime/call_site.h"
#include "base/cuda/emulated/runtime/sanitizers.h"

namespace emulated_cuda {

// Holds the lock of the world, and makes a world if there is none.
class WorldLock {
 public:
  WorldLock();
  WorldLock(const WorldLock&) = delete;
  WorldLock& operator=(const WorldLock&) = delete;
  ~WorldLock();

  // Lets other threads in for a moment; for one that waits.
  static void LetOthersIn();

 private:
  const NotRecorded not_recorded_;
};

// What a call does on a broken device.
enum class OnBroken { kFails, kWorks };

class ApiCall {
 public:
  ApiCall(const char* function, const void* frame,
          OnBroken on_broken = OnBroken::kFails);
  ApiCall(const ApiCall&) = delete;
  ApiCall& operator=(const ApiCall&) = delete;
  ~ApiCall();

  // Not cudaSuccess: what the function is to return at once.
  cudaError_t refused() const { return refused_; }
  const CallSite& site() const { return site_; }

 private:
  cudaError_t Refusal(const char* function, OnBroken on_broken) const;

  std::optional<WorldLock> lock_;  // none inside an operation
  cudaError_t refused_ = cudaSuccess;
  CallSite site_;
};

#define EMULATED_CUDA_CALL()                                           \
  ::emulated_cuda::ApiCall call(__func__, __builtin_frame_address(0)); \
  if (call.refused() != cudaSuccess) return call.refused()

// For calls that a broken device does not keep from working.
#define EMULATED_CUDA_CALL_ANYWAY()                                   \
  ::emulated_cuda::ApiCall call(__func__, __builtin_frame_address(0), \
                                ::emulated_cuda::OnBroken::kWorks);   \
  if (call.refused() != cudaSuccess) return call.refused()

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_RUNTIME_API_CALL_H_
