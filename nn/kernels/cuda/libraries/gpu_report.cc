#include "nn/kernels/cuda/libraries/gpu_report.h"

#include <cuda_runtime_api.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "nn/kernels/cuda/libraries/attention_plans.h"
#include "nn/kernels/cuda/libraries/conv.h"
#include "nn/kernels/cuda/libraries/matmul.h"

namespace troupe::nn::cuda {
namespace {

// Compute capability of the kernels: GENCODE_DEFAULT of
// third_party/cuda/defs.bzl. sm_90a runs only on 9.0.
constexpr int kKernelsMajor = 9, kKernelsMinor = 0;

PeerPath PathBetween(int from, int to) {
  if (from == to) return PeerPath::kSelf;
  const auto has = [&](cudaDeviceP2PAttr attribute) {
    int value = 0;
    return cudaDeviceGetP2PAttribute(&value, attribute, from, to) ==
               cudaSuccess &&
           value != 0;
  };
  if (!has(cudaDevP2PAttrAccessSupported)) return PeerPath::kHost;
  return has(cudaDevP2PAttrNativeAtomicSupported) ? PeerPath::kLink
                                                  : PeerPath::kPeer;
}

// Fills in `gpu`; returns false if CUDA returns no properties.
bool Describe(int ordinal, int count, GpuReport::Gpu& gpu) {
  cudaDeviceProp properties;
  if (cudaGetDeviceProperties(&properties, ordinal) != cudaSuccess) {
    return false;
  }
  gpu.name = properties.name;
  gpu.memory_bytes = properties.totalGlobalMem;
  gpu.compute_major = properties.major;
  gpu.compute_minor = properties.minor;
  gpu.multiprocessors = properties.multiProcessorCount;
  gpu.is_mig = absl::StrContains(gpu.name, " MIG ");
  char pci[32] = "";
  if (cudaDeviceGetPCIBusId(pci, sizeof(pci), ordinal) == cudaSuccess) {
    gpu.pci = pci;
  }
  for (int to = 0; to < count; ++to) {
    gpu.peers.push_back(PathBetween(ordinal, to));
  }
  return true;
}

}  // namespace

GpuReport ReportGpus() {
  GpuReport report;
  report.kernels_major = kKernelsMajor;
  report.kernels_minor = kKernelsMinor;
  (void)cudaDriverGetVersion(&report.driver);  // 0 without a driver
  (void)cudaRuntimeGetVersion(&report.runtime);
  report.libraries = {MatmulLibraryName(), ConvLibraryName(),
                      AttentionLibraryName(), NcclName()};
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted != cudaSuccess) {
    (void)cudaGetLastError();
    report.problem = absl::StrCat(cudaGetErrorName(counted), ": ",
                                  cudaGetErrorString(counted));
    return report;
  }
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    if (!Describe(ordinal, count, report.gpus.emplace_back())) {
      report.problem = absl::StrCat("cuda:", ordinal, ": ",
                                    cudaGetErrorString(cudaGetLastError()));
    }
  }
  return report;
}

}  // namespace troupe::nn::cuda
