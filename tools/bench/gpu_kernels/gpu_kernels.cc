// Times matrix products and convolutions with ResNet-50's and GPT-2's shapes on
// a GPU: the ops that networks call, beside the library's fastest algorithm,
// PyTorch, and the GPU's roofline.
//
//   bazel run --config=cuda //tools/bench/gpu_kernels -- --python=PYTHON
//   ... --filter=gpt2 --dtype=bf16 --json
//   ... "conv f 64 56 64 64 3 1 1"        one case (kernel_case.h)
//   ... --tiny --device=cpu:0             tries the benchmark without a GPU
//   ... --gpus                            lists GPUs and library versions
//
// Rows of a case "gpt2 fc f bf16": "/ library" (kernel_timer.h) and "/ torch",
// in microseconds; "/ roof", the rate beside the peak of arithmetic or memory
// that limits it (roofline.h). "geomean" rows are geometric means of ratios.
// Samples alternate between contestants; a figure is a median. Operands of
// small cases stay in the GPU's cache for all contestants.
//
// f32 is not rounded to TF32 on any side; with --allow_tf32, on all sides.

#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/kernels/cuda/device/device_info.h"
#include "tools/bench/gpu_kernels/kernel_case.h"
#include "tools/bench/gpu_kernels/kernel_timer.h"
#include "tools/bench/gpu_kernels/roofline.h"
#include "tools/bench/peer.h"
#include "tools/bench/report.h"

ABSL_FLAG(std::string, device, "cuda:0", "cuda:N, or cpu:0 to try it");
ABSL_FLAG(std::vector<std::string>, dtype,
          std::vector<std::string>({"bf16", "f32"}), "f32, bf16, or both");
ABSL_FLAG(std::string, filter, "", "only cases whose name contains this");
ABSL_FLAG(bool, tiny, false, "run tiny cases instead");
ABSL_FLAG(bool, allow_tf32, false, "f32 operands may be rounded to TF32");
ABSL_FLAG(double, seconds, 0.02, "GPU time per contestant and round");
ABSL_FLAG(int, rounds, 3, "alternating rounds; the median counts");
ABSL_FLAG(double, budget_s, 0,
          "begin no further case after this many seconds; 0: no limit");
ABSL_FLAG(bool, json, false, "print one JSON object a row");
ABSL_FLAG(std::string, python, "", "a Python with PyTorch, to measure it too");
ABSL_FLAG(bool, gpus, false, "list GPUs and versions, and end");

namespace troupe::bench {
namespace {

constexpr double kGiga = 1e9, kTera = 1e12, kMicro = 1e-6;

// Geometric means of the ratios, one for each kind of row.
class GeoMeans {
 public:
  void Add(const std::string& of, const Row& row) {
    if (!row.ratio()) return;
    Sum& sum = sums_[of];
    sum.logs += std::log(*row.ratio());
    ++sum.count;
  }
  void AddTo(Report& report) const {
    for (const auto& [of, sum] : sums_) {
      const double mean = std::exp(sum.logs / sum.count);
      report.Add(
          {absl::StrCat("geomean ", of), 1, "x", mean, 1.0, Better::kHigher});
    }
  }

 private:
  struct Sum {
    double logs = 0;
    int count = 0;
  };
  std::map<std::string, Sum> sums_;
};

class Bench {
 public:
  Bench(std::unique_ptr<KernelTimer> timer, std::unique_ptr<Peer> peer,
        Report& report)
      : timer_(std::move(timer)),
        peer_(std::move(peer)),
        peaks_(FindGpuPeaks(timer_->Gpu())),
        report_(report) {}

  absl::Status Run(const KernelCase& c, const std::string& dtype_name) {
    const nn::DType dtype =
        dtype_name == "bf16" ? nn::DType::kBF16 : nn::DType::kF32;
    TROUPE_RETURN_IF_ERROR(timer_->Prepare(c, dtype));
    const double seconds = absl::GetFlag(FLAGS_seconds);
    KernelTimes all;
    std::vector<double> torch;
    for (int round = 0; round < absl::GetFlag(FLAGS_rounds); ++round) {
      TROUPE_ASSIGN_OR_RETURN(const KernelTimes times,
                              timer_->Measure(seconds));
      all.ours.insert(all.ours.end(), times.ours.begin(), times.ours.end());
      all.library.insert(all.library.end(), times.library.begin(),
                         times.library.end());
      if (peer_ == nullptr) continue;
      TROUPE_ASSIGN_OR_RETURN(
          const double us,
          peer_->Measure(absl::StrCat(seconds, " ", dtype_name, " ", c.line)));
      if (std::isfinite(us)) torch.push_back(us);
    }
    AddRows(c, dtype, dtype_name, all, torch);
    return absl::OkStatus();
  }

  void AddMeans() { means_.AddTo(report_); }

 private:
  void AddRow(const std::string& of, Row row) {
    row.name = absl::StrCat(row.name, " / ", of);
    means_.Add(absl::StrCat(dtype_name_, " / ", of), row);
    report_.Add(row);
  }

  void AddRows(const KernelCase& c, nn::DType dtype,
               const std::string& dtype_name, const KernelTimes& times,
               const std::vector<double>& torch) {
    dtype_name_ = dtype_name;
    Row row;
    row.name = absl::StrCat(c.name, " ", dtype_name);
    row.unit = "us";
    row.ours = Median(times.ours);
    if (times.library.empty() && torch.empty()) report_.Add(row);
    if (!times.library.empty()) {
      row.peer = Median(times.library);
      AddRow("library", row);
    }
    if (!torch.empty()) {
      row.peer = Median(torch);
      AddRow("torch", row);
    }
    if (peaks_ != nullptr) AddRow("roof", RoofRow(c, dtype, row));
  }

  // Returns the row that compares the case's rate with its bound.
  Row RoofRow(const KernelCase& c, nn::DType dtype, Row row) const {
    const bool tf32 = absl::GetFlag(FLAGS_allow_tf32);
    const Arithmetic arithmetic = dtype == nn::DType::kBF16 ? Arithmetic::kBF16
                                  : tf32                    ? Arithmetic::kTf32
                                                            : Arithmetic::kF32;
    const Bound bound = BoundOf(*peaks_, arithmetic, c.flops, c.Bytes(dtype));
    const double seconds = row.ours * kMicro;
    row.better = Better::kHigher;
    if (bound.by_memory) {
      row.unit = "GB/s";
      row.ours = c.Bytes(dtype) / seconds / kGiga;
      row.peer = peaks_->gb_per_second;
    } else {
      row.unit = "TFLOP/s";
      row.ours = c.flops / seconds / kTera;
      row.peer = peaks_->tflops(arithmetic);
    }
    return row;
  }

  const std::unique_ptr<KernelTimer> timer_;
  const std::unique_ptr<Peer> peer_;
  const GpuPeaks* const peaks_;  // null if unknown
  Report& report_;
  std::string dtype_name_;
  GeoMeans means_;
};

absl::StatusOr<std::vector<KernelCase>> WantedCases(
    const std::vector<std::string>& lines) {
  std::vector<KernelCase> wanted;
  for (const std::string& line : lines) {
    TROUPE_ASSIGN_OR_RETURN(wanted.emplace_back(), ParseKernelCase(line));
  }
  if (!lines.empty()) return wanted;
  const std::string filter = absl::GetFlag(FLAGS_filter);
  for (const KernelCase& c :
       absl::GetFlag(FLAGS_tiny) ? TinyKernelCases() : KernelCases()) {
    if (absl::StrContains(c.name, filter)) wanted.push_back(c);
  }
  if (wanted.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--filter=", filter, ": no case has this in its name; shorten it"));
  }
  return wanted;
}

absl::StatusOr<std::unique_ptr<Peer>> StartPeer(const std::string& program,
                                                bool on_gpu) {
  const std::string python = absl::GetFlag(FLAGS_python);
  if (python.empty()) return nullptr;
  std::vector<std::string> arguments = {
      absl::StrCat("--device=", on_gpu ? "cuda" : "cpu")};
  if (absl::GetFlag(FLAGS_allow_tf32)) arguments.push_back("--allow_tf32");
  return Peer::Start(
      python, FindScript(program, "tools/bench/gpu_kernels/torch_kernels.py"),
      arguments);
}

// Runs cases until the time budget is spent. If one fails, prints why and goes
// on with the next; an op or dtype that the device lacks is no failure.
absl::Status RunCases(const std::vector<KernelCase>& cases, Bench& bench) {
  const double budget_s = absl::GetFlag(FLAGS_budget_s);
  const auto begin = std::chrono::steady_clock::now();
  absl::Status first_error;
  int left_out = 0;
  for (const KernelCase& c : cases) {
    for (const std::string& dtype : absl::GetFlag(FLAGS_dtype)) {
      const std::chrono::duration<double> spent =
          std::chrono::steady_clock::now() - begin;
      if (budget_s > 0 && spent.count() > budget_s) {
        ++left_out;
        continue;
      }
      const absl::Status status = bench.Run(c, dtype);
      if (status.ok()) continue;
      std::fprintf(stderr, "%s %s: %s\n", c.name.c_str(), dtype.c_str(),
                   status.ToString().c_str());
      if (!absl::IsUnimplemented(status)) first_error.Update(status);
    }
  }
  if (left_out > 0) {
    std::fprintf(stderr, "no time was left for %d of %zu cases\n", left_out,
                 cases.size() * absl::GetFlag(FLAGS_dtype).size());
  }
  return first_error;
}

// Prints "N devices", a line about each, and library versions.
void ListGpus() {
  const auto devices = nn::ListCudaDevices();
  if (devices.ok()) {
    std::printf("%zu devices\n", devices->size());
    for (const nn::CudaDeviceInfo& device : *devices) {
      std::printf("%s\n", device.ToString().c_str());
    }
  } else {
    std::printf("0 devices: %s\n",
                std::string(devices.status().message()).c_str());
  }
  const auto versions = nn::GetCudaVersions();
  std::printf("%s\n", versions.ok()
                          ? versions->ToString().c_str()
                          : std::string(versions.status().message()).c_str());
}

absl::Status Main(const std::string& program,
                  const std::vector<std::string>& lines) {
  if (absl::GetFlag(FLAGS_gpus)) {
    ListGpus();
    return absl::OkStatus();
  }
  for (const std::string& dtype : absl::GetFlag(FLAGS_dtype)) {
    if (dtype == "f32" || dtype == "bf16") continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--dtype=", dtype, ": give f32, bf16, or both"));
  }
  TROUPE_ASSIGN_OR_RETURN(const std::vector<KernelCase> cases,
                          WantedCases(lines));
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<KernelTimer> timer,
                          OpenKernelTimer(absl::GetFlag(FLAGS_device),
                                          absl::GetFlag(FLAGS_allow_tf32)));
  const std::string gpu = timer->Gpu();
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Peer> peer,
                          StartPeer(program, !gpu.empty()));
  Report report(
      "gpu_kernels",
      absl::GetFlag(FLAGS_json) ? Report::Form::kJson : Report::Form::kTable,
      gpu);
  Bench bench(std::move(timer), std::move(peer), report);
  const absl::Status status = RunCases(cases, bench);
  bench.AddMeans();
  report.End();
  return status;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Times products and convolutions on a GPU.");
  const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  const absl::Status status = troupe::bench::Main(
      argv[0], std::vector<std::string>(rest.begin() + 1, rest.end()));
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
