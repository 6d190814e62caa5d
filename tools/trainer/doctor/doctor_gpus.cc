#include "tools/trainer/doctor/doctor_gpus.h"

#include <cstdlib>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/files/file_system.h"
#include "nn/kernels/device_backends.h"

namespace troupe::tools {
namespace {

using Gpu = nn::GpuReport::Gpu;
using nn::PeerPath;

constexpr char kInfiniBand[] = "/sys/class/infiniband";
constexpr std::int64_t kStateBytesMax = 4096;

// Formats a version: 13000 is "13.0".
std::string CudaVersion(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

std::string Visible(const GpuFacts& facts) {
  return facts.visible_devices.has_value()
             ? absl::StrCat("CUDA_VISIBLE_DEVICES=", *facts.visible_devices)
             : "";
}

Finding WithoutCuda(const GpuFacts& facts) {
  if (!facts.driver_is_here) {
    return {"GPUs", Health::kOk,
            "none used: this trainer was built without CUDA", ""};
  }
  return {"GPUs", Health::kWarning,
          "NVIDIA's driver is here, and this trainer was built without CUDA",
          "build it with --config=cuda (docs/cuda.md), to train with device = "
          "\"cuda\""};
}

// Checks the driver, which runs programs of its own and of older major
// versions.
Finding CheckDriver(const nn::GpuReport& report) {
  if (report.driver == 0) {
    return {"GPU driver", Health::kWarning, "none",
            "install NVIDIA's driver, or start the container with --gpus=all; "
            "without it only device = \"cpu:0\" works"};
  }
  const std::string found =
      absl::StrCat("knows CUDA up to ", CudaVersion(report.driver));
  if (report.driver / 1000 >= report.runtime / 1000) {
    return {"GPU driver", Health::kOk, found, ""};
  }
  return {"GPU driver", Health::kProblem, found,
          absl::StrCat("this trainer needs CUDA ", CudaVersion(report.runtime),
                       ": install a newer driver")};
}

Finding CountGpus(const GpuFacts& facts) {
  const nn::GpuReport& report = *facts.report;
  const std::string visible = Visible(facts);
  if (!report.gpus.empty()) {
    return {"GPUs", Health::kOk,
            absl::StrCat(report.gpus.size(), visible.empty() ? "" : ", of ",
                         visible),
            ""};
  }
  const std::string why =
      absl::StrCat("none", report.problem.empty() ? "" : ": ", report.problem);
  if (visible.empty()) {
    return {"GPUs", Health::kWarning, why,
            "see whether nvidia-smi lists one; a container needs --gpus=all"};
  }
  return {"GPUs", Health::kProblem, absl::StrCat(why, ", of ", visible),
          "unset it, or write numbers of GPUs that nvidia-smi lists"};
}

Finding CheckGpu(const nn::GpuReport& report, int ordinal) {
  const Gpu& gpu = report.gpus[ordinal];
  constexpr double kBytesPerGib = 1 << 30;
  Finding finding;
  finding.what = absl::StrCat("cuda:", ordinal);
  finding.found = absl::StrFormat(
      "%s, %.1f GiB, compute %d.%d, %d multiprocessors, PCI %s%s", gpu.name,
      static_cast<double>(gpu.memory_bytes) / kBytesPerGib, gpu.compute_major,
      gpu.compute_minor, gpu.multiprocessors, gpu.pci,
      gpu.is_mig ? ", a MIG part" : "");
  if (gpu.compute_major == report.kernels_major &&
      gpu.compute_minor == report.kernels_minor) {
    return finding;
  }
  finding.health = Health::kProblem;
  finding.advice = absl::StrFormat(
      "this trainer has kernels for compute %d.%d alone: add compute %d.%d to "
      "GENCODE_DEFAULT in third_party/cuda/defs.bzl and build it anew",
      report.kernels_major, report.kernels_minor, gpu.compute_major,
      gpu.compute_minor);
  return finding;
}

bool IsOff(const GpuFacts& facts, absl::string_view variable) {
  return absl::c_linear_search(facts.nccl_switches, variable);
}

// Returns the transport that NCCL uses for a path within a machine.
std::string NcclWay(const GpuFacts& facts, PeerPath path) {
  const bool peer = path == PeerPath::kPeer || path == PeerPath::kLink;
  if (peer && !IsOff(facts, "NCCL_P2P_DISABLE")) {
    return path == PeerPath::kLink ? "P2P (NVLink)" : "P2P (PCIe)";
  }
  return IsOff(facts, "NCCL_SHM_DISABLE") ? "sockets" : "SHM";
}

// Returns one row of the matrix: the other GPUs, grouped by the path to them.
Finding CheckPeers(const GpuFacts& facts, int ordinal) {
  const std::vector<PeerPath>& peers = facts.report->gpus[ordinal].peers;
  std::vector<std::pair<std::string, std::vector<std::string>>> ways;
  for (std::size_t to = 0; to < peers.size(); ++to) {
    if (peers[to] == PeerPath::kSelf) continue;
    const std::string way = NcclWay(facts, peers[to]);
    auto same = absl::c_find_if(
        ways, [&](const auto& each) { return each.first == way; });
    if (same == ways.end()) same = ways.insert(ways.end(), {way, {}});
    same->second.push_back(absl::StrCat("cuda:", to));
  }
  std::vector<std::string> texts;
  for (const auto& [way, to] : ways) {
    texts.push_back(absl::StrCat(way, " to ", absl::StrJoin(to, " ")));
  }
  Finding finding;
  finding.what = absl::StrCat("NCCL from cuda:", ordinal);
  finding.found = absl::StrJoin(texts, ", ");
  return finding;
}

Finding CheckNetwork(const GpuFacts& facts) {
  const bool off = IsOff(facts, "NCCL_IB_DISABLE");
  std::string found =
      facts.infiniband.empty() ? "sockets: no active InfiniBand device"
      : off
          ? "sockets: InfiniBand is switched off"
          : absl::StrCat("InfiniBand: ", absl::StrJoin(facts.infiniband, " "));
  if (!facts.nccl_switches.empty()) {
    absl::StrAppend(&found, " (", absl::StrJoin(facts.nccl_switches, "=1, "),
                    "=1)");
  }
  return {"NCCL to other hosts", Health::kOk, std::move(found), ""};
}

// Returns the InfiniBand and RoCE devices whose first port is up.
std::vector<std::string> ActiveInfiniBand() {
  base::PosixFileSystem files;
  std::vector<std::string> active;
  if (!files.Exists(kInfiniBand)) return active;
  const absl::StatusOr<std::vector<std::string>> names =
      files.List(kInfiniBand);
  if (!names.ok()) return active;
  for (const std::string& name : *names) {
    const absl::StatusOr<std::string> state = files.ReadToEnd(
        absl::StrCat(kInfiniBand, "/", name, "/ports/1/state"), kStateBytesMax);
    if (state.ok() && absl::StrContains(*state, "ACTIVE")) {
      active.push_back(name);
    }
  }
  return active;
}

}  // namespace

std::vector<Finding> CheckGpus(const GpuFacts& facts) {
  if (!facts.report.has_value()) return {WithoutCuda(facts)};
  const nn::GpuReport& report = *facts.report;
  std::vector<Finding> findings = {
      {"GPU libraries", Health::kOk,
       absl::StrCat("CUDA ", CudaVersion(report.runtime), ", ",
                    absl::StrJoin(report.libraries, ", ")),
       ""},
      CheckDriver(report)};
  if (findings.back().health != Health::kOk) return findings;
  findings.push_back(CountGpus(facts));
  const int count = static_cast<int>(report.gpus.size());
  for (int i = 0; i < count; ++i) findings.push_back(CheckGpu(report, i));
  for (int i = 0; i < count && count > 1; ++i) {
    findings.push_back(CheckPeers(facts, i));
  }
  if (count > 0) findings.push_back(CheckNetwork(facts));
  return findings;
}

GpuFacts ReadGpus() {
  GpuFacts facts;
  facts.driver_is_here =
      base::PosixFileSystem().Exists("/proc/driver/nvidia/version");
  const nn::DeviceBackend* const backend =
      nn::FindDeviceBackend(nn::DeviceType::kCuda);
  if (backend == nullptr || backend->report == nullptr) return facts;
  facts.report = backend->report();
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible != nullptr) facts.visible_devices = visible;
  facts.infiniband = ActiveInfiniBand();
  for (const char* name :
       {"NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE"}) {
    const char* const value = std::getenv(name);
    if (value != nullptr && absl::string_view(value) == "1") {
      facts.nccl_switches.push_back(name);
    }
  }
  return facts;
}

}  // namespace troupe::tools
