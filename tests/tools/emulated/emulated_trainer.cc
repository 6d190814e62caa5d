// The trainer on emulated GPUs (base/cuda/emulated), for tests of
// device = "cuda" from the command line on. Environment variables describe the
// machine:
//
//   EMULATED_GPUS=4        GPUs; default 2
//   EMULATED_FASTEST=1     which algorithm is the fastest; default 0
//   EMULATED_BREAKS=200    the record of an event that finds its GPU broken
//   CUDA_VISIBLE_DEVICES   as on a real one

#include <cstdlib>

#include "base/cuda/emulated/emulated_cuda.h"
#include "nn/kernels/cuda/libraries/emulated_choice.h"
#include "tools/trainer/trainer_main.h"

int main(int argc, char** argv) {
  emulated_cuda::Options options;
  if (const char* gpus = std::getenv("EMULATED_GPUS")) {
    options.devices = std::atoi(gpus);
  }
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) {
    options.visible_devices = visible;
  }
  if (const char* breaks = std::getenv("EMULATED_BREAKS")) {
    options.fail = {std::strtoull(breaks, nullptr, 10), "cudaEventRecord",
                    cudaErrorIllegalAddress, /*sticky=*/true};
  }
  emulated_cuda::Reset(options);
  if (const char* fastest = std::getenv("EMULATED_FASTEST")) {
    troupe::nn::cuda::SetEmulatedFastest(std::atoi(fastest));
  }
  return troupe::tools::TrainerMain(argc, argv);
}
