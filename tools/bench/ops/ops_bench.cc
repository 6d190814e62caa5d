// Times every op of the cpu kernels, beside oneDNN's and PyTorch's.
//
//   ops_bench                                   the kernels alone
//   ops_bench --python=/path/to/python          beside PyTorch, same rounds
//   ops_bench --isa=avx2 --filter=conv --json
//   ops_bench "linear f 64 784 512"             one case (op_bench_case.h)
//
// Rounds alternate between the contestants; the figure is the median over
// rounds of the best block. One thread. `x` is PyTorch's time over ours.

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "tools/bench/ops/op_bench_case.h"
#include "tools/bench/ops/torch_peer.h"

ABSL_FLAG(std::string, python, "", "a Python with PyTorch, to compare with");
ABSL_FLAG(std::string, script, "tools/bench/ops/torch_ops.py",
          "the peer's program");
ABSL_FLAG(std::string, isa, "", "plain, avx2 or avx512; default: the best");
ABSL_FLAG(std::string, filter, "", "only cases that contain this");
ABSL_FLAG(bool, onednn, true, "measure oneDNN's own functions too");
ABSL_FLAG(bool, json, false, "one JSON object per line");
ABSL_FLAG(int, rounds, 3, "alternating rounds");
ABSL_FLAG(double, seconds, 0.1, "per contestant and round");

namespace troupe::bench {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
      .count();
}

// Nanoseconds a run of the best block.
absl::StatusOr<double> BestNs(const OpBenchCase& c, double seconds) {
  for (int i = 0; i < 3; ++i) TROUPE_RETURN_IF_ERROR(c.run());
  auto begin = std::chrono::steady_clock::now();
  TROUPE_RETURN_IF_ERROR(c.run());
  const double once = std::max(SecondsSince(begin), 1e-8);
  const int count = std::max(1, static_cast<int>(seconds / 40 / once));
  double best = std::numeric_limits<double>::infinity();
  const auto start = std::chrono::steady_clock::now();
  for (int block = 0; block < 3 || SecondsSince(start) < seconds; ++block) {
    begin = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) TROUPE_RETURN_IF_ERROR(c.run());
    best = std::min(best, SecondsSince(begin) / count);
  }
  return best * 1e9;
}

double Median(std::vector<double> values) {
  if (values.empty()) return kNone;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Row {
  std::string line;
  double flops, bytes, ours, onednn, torch;  // ns
};

void Print(const Row& row, bool json) {
  const double rate = (row.flops > 0 ? row.flops : row.bytes) / row.ours;
  const char* unit = row.flops > 0 ? "GFLOP/s" : "GB/s";
  if (json) {
    std::printf("{\"case\": \"%s\", \"ns\": %.1f, \"%s\": %.1f",
                row.line.c_str(), row.ours, unit, rate);
    if (row.onednn == row.onednn)
      std::printf(", \"onednn_ns\": %.1f", row.onednn);
    if (row.torch == row.torch) std::printf(", \"torch_ns\": %.1f", row.torch);
    std::printf("}\n");
  } else {
    std::printf("%-28s %12.0f %8.1f %-8s %12.0f %12.0f %8.2f\n",
                row.line.c_str(), row.ours, rate, unit, row.onednn, row.torch,
                row.torch / row.ours);
  }
  std::fflush(stdout);
}

absl::Status Measure(const std::string& line, nn::Kernels& kernels,
                     TorchPeer* peer) {
  TROUPE_ASSIGN_OR_RETURN(OpBenchCase ours, MakeOpBenchCase(line, kernels));
  OpBenchCase onednn;
  if (absl::GetFlag(FLAGS_onednn)) {
    TROUPE_ASSIGN_OR_RETURN(onednn, MakeOneDnnCase(line, kernels));
  }
  const double seconds = absl::GetFlag(FLAGS_seconds);
  std::vector<double> ns[3];
  for (int round = 0; round < absl::GetFlag(FLAGS_rounds); ++round) {
    TROUPE_ASSIGN_OR_RETURN(double own_ns, BestNs(ours, seconds));
    ns[0].push_back(own_ns);
    if (onednn.run) {
      TROUPE_ASSIGN_OR_RETURN(double onednn_ns, BestNs(onednn, seconds));
      ns[1].push_back(onednn_ns);
    }
    if (peer) {
      TROUPE_ASSIGN_OR_RETURN(double torch_ns, peer->BestNs(line, seconds));
      ns[2].push_back(torch_ns);
    }
  }
  Print({line, ours.flops, ours.bytes, Median(ns[0]), Median(ns[1]),
         Median(ns[2])},
        absl::GetFlag(FLAGS_json));
  return absl::OkStatus();
}

absl::Status Run(std::vector<std::string> lines) {
  omp_set_num_threads(1);  // oneDNN's
  nn::CpuKernelOptions options;
  const std::string isa = absl::GetFlag(FLAGS_isa);
  if (isa == "plain") options.isa = nn::CpuIsa::kPlain;
  if (isa == "avx2") options.isa = nn::CpuIsa::kAvx2;
  const auto kernels = nn::CreateCpuKernels(options);
  std::unique_ptr<TorchPeer> peer;
  if (const std::string python = absl::GetFlag(FLAGS_python); !python.empty()) {
    TROUPE_ASSIGN_OR_RETURN(
        peer, TorchPeer::Start(python, absl::GetFlag(FLAGS_script)));
  }
  if (lines.empty()) lines = DefaultOpBenchLines();
  if (!absl::GetFlag(FLAGS_json)) {
    std::printf("%s\n%-28s %12s %17s %12s %12s %8s\n",
                kernels->Describe().c_str(), "case", "ns", "", "oneDNN ns",
                "PyTorch ns", "x");
  }
  for (const std::string& line : lines) {
    if (!absl::StrContains(line, absl::GetFlag(FLAGS_filter))) continue;
    TROUPE_RETURN_IF_ERROR(Measure(line, *kernels, peer.get()));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  const absl::Status status = troupe::bench::Run(
      std::vector<std::string>(rest.begin() + 1, rest.end()));
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
