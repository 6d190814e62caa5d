#include <cstdlib>

#include "base/cuda/emulated/schedules.h"
#include "tests/base/cuda/emulated/test_device.h"

namespace emulated_cuda_test {

std::string WhyNoDevice() { return ""; }

void* AllocateShared(std::size_t bytes) {
  void* const memory = std::malloc(bytes + (bytes == 0 ? 1 : 0));
  if (memory == nullptr) std::abort();
  return memory;
}

void FreeShared(void* memory) { std::free(memory); }

absl::Status WaitFor(absl::Status launched) { return launched; }

unsigned char PoisonByte() { return emulated_cuda::CurrentSchedule().poison; }

int RunCount() {
  return static_cast<int>(emulated_cuda::AllSchedules().size());
}

void BeginRun(int run) {
  emulated_cuda::SetSchedule(
      run < 0 ? emulated_cuda::Schedule()
              : emulated_cuda::AllSchedules()[static_cast<std::size_t>(run)]);
}

}  // namespace emulated_cuda_test
