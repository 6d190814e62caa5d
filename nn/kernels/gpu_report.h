// Description of the GPUs of this machine, as a process sees them, to check
// whether a job can run (`trainer doctor`).
//
//   const DeviceBackend* backend = FindDeviceBackend(DeviceType::kCuda);
//   if (backend == nullptr) return SayThatThereIsNone();
//   const GpuReport report = backend->report();
//   for (const GpuReport::Gpu& gpu : report.gpus) std::cout << gpu.name;
//
// Plain data, no CUDA.

#ifndef NN_KERNELS_GPU_REPORT_H_
#define NN_KERNELS_GPU_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::nn {

// Path from a GPU to the memory of another one in the same machine.
enum class PeerPath {
  kSelf,
  kHost,  // no direct access: through host memory
  kPeer,  // direct, as over PCIe
  kLink,  // direct and with atomics, as over NVLink
};

struct GpuReport {
  struct Gpu {
    std::string name;  // "NVIDIA H200"
    std::uint64_t memory_bytes = 0;
    int compute_major = 0;  // compute capability 9.0: 9 and 0
    int compute_minor = 0;
    int multiprocessors = 0;
    std::string pci;              // "0000:1b:00.0"
    bool is_mig = false;          // a part of a GPU
    std::vector<PeerPath> peers;  // one for each GPU of the list
  };

  // Newest CUDA version that the driver supports, and the version that the
  // program is built with; 13000 is 13.0. No driver: 0.
  int driver = 0;
  int runtime = 0;
  // Compute capability that the program has kernels for.
  int kernels_major = 0;
  int kernels_minor = 0;
  std::vector<std::string> libraries;  // "cuBLASLt 13.0.2", "NCCL 2.28.9"
  std::vector<Gpu> gpus;               // visible ones, by ordinal
  std::string problem;                 // why there are no GPUs, in CUDA's words
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_GPU_REPORT_H_
