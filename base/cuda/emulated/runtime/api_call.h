// The beginning of every function of the API.
//
//     cudaError_t cudaStreamCreate(cudaStream_t* stream) {
//       EMULATED_CUDA_CALL();
//       ...
//       return cudaSuccess;
//     }
//
// The macro declares `call`: it takes the runtime's lock and hides the
// runtime's own accesses from ThreadSanitizer; its destructor may run a few
// operations, by the seed. The macro returns an error at once inside an
// operation, for a call that shall fail (FailingCall), and if the current
// device is broken.

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

  // Releases the lock for a moment, for a thread that waits.
  static void LetOthersIn();

 private:
  const NotRecorded not_recorded_;
};

// Behaviour of a call on a broken device.
enum class OnBroken { kFails, kWorks };

class ApiCall {
 public:
  ApiCall(const char* function, const void* frame,
          OnBroken on_broken = OnBroken::kFails);
  ApiCall(const ApiCall&) = delete;
  ApiCall& operator=(const ApiCall&) = delete;
  ~ApiCall();

  // Returns the error that the function must return at once, or cudaSuccess.
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

// For calls that also work on a broken device.
#define EMULATED_CUDA_CALL_ANYWAY()                                   \
  ::emulated_cuda::ApiCall call(__func__, __builtin_frame_address(0), \
                                ::emulated_cuda::OnBroken::kWorks);   \
  if (call.refused() != cudaSuccess) return call.refused()

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_RUNTIME_API_CALL_H_
