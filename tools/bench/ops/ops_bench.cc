// Times every op of the cpu kernels, beside oneDNN's and PyTorch's.
//
//   ops_bench                                   the kernels alone
//   ops_bench --python=/path/to/python          beside PyTorch, same rounds
//   ops_bench --isa=avx2 --filter=conv --json
//   ops_bench --rates                           GFLOP/s or GB/s as well
//   ops_bench "linear f 64 784 512"             one case (op_bench_case.h)
//
// Rounds alternate between the contestants. A figure is the median over rounds
// of the best block, on one thread. A row "... [oneDNN]" is oneDNN's function
// for the same op, with weights in plain layout.

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "tools/bench/ops/op_bench_case.h"
#include "tools/bench/peer.h"
#include "tools/bench/report.h"

ABSL_FLAG(std::string, python, "", "a Python with PyTorch, to compare with");
ABSL_FLAG(std::string, isa, "", "plain, avx2 or avx512; default: the best");
ABSL_FLAG(std::string, filter, "", "only cases that contain this");
ABSL_FLAG(bool, onednn, true, "measure oneDNN's own functions too");
ABSL_FLAG(bool, json, false, "one JSON object per line");
ABSL_FLAG(bool, rates, false, "GFLOP/s or GB/s of each op too");
ABSL_FLAG(int, rounds, 3, "alternating rounds");
ABSL_FLAG(double, seconds, 0.1, "time per contestant and round");

namespace troupe::bench {
namespace {

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
      .count();
}

// Returns the nanoseconds per run of the best block.
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

// Adds a row of times and, with --rates, one of rates.
void AddRows(const OpBenchCase& c, const std::string& name, double ns,
             std::optional<double> peer_ns, Report& report) {
  report.Add({name, 1, "ns", ns, peer_ns});
  if (!absl::GetFlag(FLAGS_rates)) return;
  const double work = c.flops > 0 ? c.flops : c.bytes;
  std::optional<double> peer_rate;
  if (peer_ns) peer_rate = work / *peer_ns;
  report.Add({name, 1, c.flops > 0 ? "GFLOP/s" : "GB/s", work / ns, peer_rate,
              Better::kHigher});
}

absl::Status Measure(const std::string& line, nn::Kernels& kernels, Peer* peer,
                     Report& report) {
  TROUPE_ASSIGN_OR_RETURN(OpBenchCase ours, MakeOpBenchCase(line, kernels));
  OpBenchCase onednn;
  if (absl::GetFlag(FLAGS_onednn)) {
    TROUPE_ASSIGN_OR_RETURN(onednn, MakeOneDnnCase(line, kernels));
  }
  const double seconds = absl::GetFlag(FLAGS_seconds);
  std::vector<double> own_ns, onednn_ns, peer_ns;
  for (int round = 0; round < absl::GetFlag(FLAGS_rounds); ++round) {
    TROUPE_ASSIGN_OR_RETURN(double ns, BestNs(ours, seconds));
    own_ns.push_back(ns);
    if (onednn.run) {
      TROUPE_ASSIGN_OR_RETURN(ns, BestNs(onednn, seconds));
      onednn_ns.push_back(ns);
    }
    if (peer) {
      TROUPE_ASSIGN_OR_RETURN(ns,
                              peer->Measure(absl::StrCat(seconds, " ", line)));
      peer_ns.push_back(ns);
    }
  }
  std::optional<double> theirs;
  if (peer) theirs = Median(peer_ns);
  AddRows(ours, line, Median(own_ns), theirs, report);
  if (onednn.run) {
    AddRows(ours, absl::StrCat(line, " [oneDNN]"), Median(onednn_ns), theirs,
            report);
  }
  return absl::OkStatus();
}

absl::Status Run(const std::string& program, std::vector<std::string> lines) {
  omp_set_num_threads(1);  // for oneDNN
  nn::CpuKernelOptions options;
  const std::string isa = absl::GetFlag(FLAGS_isa);
  if (isa == "plain") options.isa = base::CpuIsa::kPlain;
  if (isa == "avx2") options.isa = base::CpuIsa::kAvx2;
  const auto kernels = nn::CreateCpuKernels(options);
  std::unique_ptr<Peer> peer;
  if (const std::string python = absl::GetFlag(FLAGS_python); !python.empty()) {
    TROUPE_ASSIGN_OR_RETURN(
        peer,
        Peer::Start(python, FindScript(program, "tools/bench/ops/torch_ops.py"),
                    {}));
  }
  if (lines.empty()) lines = DefaultOpBenchLines();
  Report report("ops", absl::GetFlag(FLAGS_json) ? Report::Form::kJson
                                                 : Report::Form::kTable);
  for (const std::string& line : lines) {
    if (!absl::StrContains(line, absl::GetFlag(FLAGS_filter))) continue;
    TROUPE_RETURN_IF_ERROR(Measure(line, *kernels, peer.get(), report));
  }
  report.End();
  return absl::OkStatus();
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  const absl::Status status = troupe::bench::Run(
      argv[0], std::vector<std::string>(rest.begin() + 1, rest.end()));
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
