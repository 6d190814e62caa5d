#include "tools/trainer/doctor/doctor_gpus.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace troupe::tools {
namespace {

using nn::PeerPath;

nn::GpuReport::Gpu H200(const std::string& pci, std::vector<PeerPath> peers) {
  nn::GpuReport::Gpu gpu;
  gpu.name = "NVIDIA H200";
  gpu.memory_bytes = std::uint64_t{150} << 30;
  gpu.compute_major = 9;
  gpu.multiprocessors = 132;
  gpu.pci = pci;
  gpu.peers = std::move(peers);
  return gpu;
}

// Returns four GPUs: two pairs with NVLink, PCIe between the pairs, and no path
// from the last GPU to the first.
GpuFacts FourGpus() {
  nn::GpuReport report;
  report.driver = 13010;
  report.runtime = 13000;
  report.kernels_major = 9;
  report.libraries = {"cuBLASLt 13.0.2", "cuDNN 9.19.0", "NCCL 2.28.9"};
  constexpr PeerPath s = PeerPath::kSelf, l = PeerPath::kLink,
                     p = PeerPath::kPeer, h = PeerPath::kHost;
  report.gpus = {
      H200("0000:1b:00.0", {s, l, p, h}), H200("0000:1c:00.0", {l, s, p, p}),
      H200("0000:3b:00.0", {p, p, s, l}), H200("0000:3c:00.0", {h, p, l, s})};
  GpuFacts facts;
  facts.report = report;
  facts.infiniband = {"mlx5_0", "mlx5_1"};
  return facts;
}

TEST(DoctorGpus, ShowsDevicesAndTheWaysBetweenThem) {
  EXPECT_EQ(
      FormatFindings(CheckGpus(FourGpus())),
      "GPU libraries        ok       CUDA 13.0, cuBLASLt 13.0.2, cuDNN 9.19.0, "
      "NCCL 2.28.9\n"
      "GPU driver           ok       knows CUDA up to 13.1\n"
      "GPUs                 ok       4\n"
      "cuda:0               ok       NVIDIA H200, 150.0 GiB, compute 9.0, 132 "
      "multiprocessors, PCI 0000:1b:00.0\n"
      "cuda:1               ok       NVIDIA H200, 150.0 GiB, compute 9.0, 132 "
      "multiprocessors, PCI 0000:1c:00.0\n"
      "cuda:2               ok       NVIDIA H200, 150.0 GiB, compute 9.0, 132 "
      "multiprocessors, PCI 0000:3b:00.0\n"
      "cuda:3               ok       NVIDIA H200, 150.0 GiB, compute 9.0, 132 "
      "multiprocessors, PCI 0000:3c:00.0\n"
      "NCCL from cuda:0     ok       P2P (NVLink) to cuda:1, P2P (PCIe) to "
      "cuda:2, SHM to cuda:3\n"
      "NCCL from cuda:1     ok       P2P (NVLink) to cuda:0, P2P (PCIe) to "
      "cuda:2 cuda:3\n"
      "NCCL from cuda:2     ok       P2P (PCIe) to cuda:0 cuda:1, P2P (NVLink) "
      "to cuda:3\n"
      "NCCL from cuda:3     ok       SHM to cuda:0, P2P (PCIe) to cuda:1, P2P "
      "(NVLink) to cuda:2\n"
      "NCCL to other hosts  ok       InfiniBand: mlx5_0 mlx5_1\n");
}

// Returns the row called `what`.
Finding Row(const GpuFacts& facts, const std::string& what) {
  for (const Finding& each : CheckGpus(facts)) {
    if (each.what == what) return each;
  }
  ADD_FAILURE() << "no row " << what;
  return {};
}

TEST(DoctorGpus, SwitchesOfNcclCount) {
  GpuFacts facts = FourGpus();
  facts.nccl_switches = {"NCCL_P2P_DISABLE"};
  EXPECT_EQ(Row(facts, "NCCL from cuda:0").found,
            "SHM to cuda:1 cuda:2 cuda:3");
  facts.nccl_switches = {"NCCL_SHM_DISABLE", "NCCL_IB_DISABLE"};
  EXPECT_EQ(Row(facts, "NCCL from cuda:3").found,
            "sockets to cuda:0, P2P (PCIe) to cuda:1, P2P (NVLink) to cuda:2");
  EXPECT_EQ(Row(facts, "NCCL to other hosts").found,
            "sockets: InfiniBand is switched off (NCCL_SHM_DISABLE=1, "
            "NCCL_IB_DISABLE=1)");
  facts.infiniband.clear();
  facts.nccl_switches.clear();
  EXPECT_EQ(Row(facts, "NCCL to other hosts").found,
            "sockets: no active InfiniBand device");
}

TEST(DoctorGpus, OneGpuHasNoPeers) {
  GpuFacts facts = FourGpus();
  facts.report->gpus = {H200("0000:1b:00.0", {PeerPath::kSelf})};
  facts.report->gpus[0].name = "NVIDIA H200 MIG 1g.18gb";
  facts.report->gpus[0].is_mig = true;
  facts.visible_devices = "3";
  EXPECT_EQ(CheckGpus(facts).size(), 5u);
  EXPECT_EQ(Row(facts, "GPUs").found, "1, of CUDA_VISIBLE_DEVICES=3");
  EXPECT_EQ(Row(facts, "cuda:0").found,
            "NVIDIA H200 MIG 1g.18gb, 150.0 GiB, compute 9.0, 132 "
            "multiprocessors, PCI 0000:1b:00.0, a MIG part");
}

TEST(DoctorGpus, SaysWhatIsMissing) {
  GpuFacts none;
  EXPECT_EQ(Row(none, "GPUs").health, Health::kOk);
  EXPECT_EQ(Row(none, "GPUs").found,
            "none used: this trainer was built without CUDA");
  none.driver_is_here = true;
  EXPECT_EQ(Row(none, "GPUs").health, Health::kWarning);
  EXPECT_NE(Row(none, "GPUs").advice.find("--config=cuda"), std::string::npos);

  GpuFacts facts = FourGpus();
  facts.report->gpus.clear();
  facts.report->problem = "cudaErrorNoDevice: no CUDA-capable device";
  EXPECT_EQ(Row(facts, "GPUs").health, Health::kWarning);
  EXPECT_EQ(Row(facts, "GPUs").found,
            "none: cudaErrorNoDevice: no CUDA-capable device");
  facts.visible_devices = "";
  EXPECT_EQ(Row(facts, "GPUs").health, Health::kProblem);
  EXPECT_EQ(Row(facts, "GPUs").advice,
            "unset it, or write numbers of GPUs that nvidia-smi lists");

  facts.report->driver = 12080;
  EXPECT_EQ(Row(facts, "GPU driver").health, Health::kProblem);
  EXPECT_EQ(Row(facts, "GPU driver").advice,
            "this trainer needs CUDA 13.0: install a newer driver");
  facts.report->driver = 0;
  EXPECT_EQ(Row(facts, "GPU driver").health, Health::kWarning);
  EXPECT_EQ(Row(facts, "GPU driver").found, "none");

  facts = FourGpus();
  facts.report->gpus[1].compute_major = 8;
  EXPECT_EQ(Row(facts, "cuda:0").health, Health::kOk);
  EXPECT_EQ(Row(facts, "cuda:1").health, Health::kProblem);
  EXPECT_EQ(
      Row(facts, "cuda:1").advice,
      "this trainer has kernels for compute 9.0 alone: add compute 8.0 "
      "to GENCODE_DEFAULT in third_party/cuda/defs.bzl and build it anew");
}

// The result depends on this machine.
TEST(DoctorGpus, ReadsThisMachine) {
  EXPECT_FALSE(CheckGpus(ReadGpus()).empty());
}

}  // namespace
}  // namespace troupe::tools
