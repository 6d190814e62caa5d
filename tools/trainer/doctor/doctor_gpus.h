// Findings on GPUs, and on how NCCL would move tensors between them as far as
// that is known without running it.
//
//   GpuFacts facts;
//   facts.report = backend->report();
//   facts.visible_devices = "0,1";
//   std::cout << FormatFindings(CheckGpus(facts));
//   // GPUs    ok       2, of CUDA_VISIBLE_DEVICES=0,1
//   // cuda:0  ok       NVIDIA H200, 139.8 GiB, compute 9.0, ..
//
// Pure, except for ReadGpus(), which reads the machine's state.

#ifndef TOOLS_TRAINER_DOCTOR_DOCTOR_GPUS_H_
#define TOOLS_TRAINER_DOCTOR_DOCTOR_GPUS_H_

#include <optional>
#include <string>
#include <vector>

#include "nn/kernels/gpu_report.h"
#include "tools/trainer/doctor/doctor_findings.h"

namespace troupe::tools {

struct GpuFacts {
  std::optional<nn::GpuReport> report;         // none: built without CUDA
  bool driver_is_here = false;                 // the kernel has NVIDIA's module
  std::optional<std::string> visible_devices;  // CUDA_VISIBLE_DEVICES
  std::vector<std::string> infiniband;         // devices with an active port
  // Names among NCCL_P2P_DISABLE, NCCL_SHM_DISABLE and NCCL_IB_DISABLE that are
  // set to 1.
  std::vector<std::string> nccl_switches;
};

// Returns one row if there is no CUDA; else rows on libraries, driver, each
// GPU, its connections to other GPUs, and the connection to other hosts.
std::vector<Finding> CheckGpus(const GpuFacts& facts);

// Reads the facts. Opens the driver if the program is built with CUDA.
GpuFacts ReadGpus();

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_DOCTOR_DOCTOR_GPUS_H_
