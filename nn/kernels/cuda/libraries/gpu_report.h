// Fills a GpuReport (nn/kernels/gpu_report.h) by calls of the CUDA runtime.
//
//   const GpuReport report = ReportGpus();
//   std::cout << report.gpus.size() << " GPUs\n";
//
// Threads: any. Cost: the first call opens the driver (about 0.1 s); it takes
// no device memory.

#ifndef NN_KERNELS_CUDA_LIBRARIES_GPU_REPORT_H_
#define NN_KERNELS_CUDA_LIBRARIES_GPU_REPORT_H_

#include <string>

#include "nn/kernels/gpu_report.h"

namespace troupe::nn::cuda {

// Returns the report. Never fails: an error is in `problem`, and values that
// CUDA does not return are missing.
GpuReport ReportGpus();

// Returns "NCCL 2.28.9".
std::string NcclName();

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_GPU_REPORT_H_
