// Times all_reduce over each transport, and, in alternating turns,
// torch.distributed over Gloo, MPI_Allreduce, and the bounds that memory and
// sockets set.
//
//   bazel run //tools/bench/collectives -- --python=$HOME/peer/bin/python
//   ... --transports=shm,tcp --ranks=4 --sizes=64KB,1MB
//   ... --json                                one JSON object a row
//   ... --ranks=3 --table                     all algorithms, and the one that
//                                             comm/spanning chooses
//
// Ours over shm reduces tensors in memory that the processes share
// (comm/shm/shared_memory.h), except with --table, which measures links.
//
// Figures are microseconds of a sum of f32 on rank 0. All contestants start
// first and sleep between their turns; each round runs them in the reverse
// order of the one before. Rows:
//
//     all_reduce tcp 64 KB             beside Gloo
//     all_reduce tcp 64 KB, MPI        beside MPI_Allreduce
//     all_reduce tcp 64 KB, sockets    the ratio is the fraction reached of the
//                                      speed of an exchange by system calls
//                                      alone, over loopback; for local and shm,
//                                      of memcpy

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/synchronization/mutex.h"
#include "comm/connect/transports.h"
#include "comm/spanning/plan/algorithm.h"
#include "tools/bench/collectives/contestants.h"
#include "tools/bench/collectives/workers.h"
#include "tools/bench/report.h"

ABSL_FLAG(std::vector<std::string>, transports, {},
          "which of local and the transports of comm.transport but auto; "
          "default: all");
ABSL_FLAG(std::vector<std::string>, sizes, {},
          "which of 4KB, 64KB, 1MB, 25MB, 100MB; default: all");
ABSL_FLAG(int, ranks, 2, "ranks: threads of local, else processes");
ABSL_FLAG(int, rounds, 7, "alternating rounds of each case; the median counts");
ABSL_FLAG(bool, table, false,
          "times the algorithms of each size, and prints which one is chosen");
ABSL_FLAG(bool, json, false, "print one JSON object a row");
ABSL_FLAG(std::string, python, "",
          "a Python with PyTorch, to measure that peer");
ABSL_FLAG(std::string, worker, "",
          "run as this contestant (workers.h); the benchmark starts itself "
          "with it. On several hosts, set --folder, --rank and --address too");
ABSL_FLAG(std::string, folder, "", "folder in which the workers meet");
ABSL_FLAG(std::string, algorithm, "",
          "exchange or two_step, for a worker; empty: comm/spanning chooses");
ABSL_FLAG(int, rank, 0, "rank of the worker");
ABSL_FLAG(std::string, address, "127.0.0.1",
          "address that the worker listens on");

namespace troupe::bench {
namespace {

constexpr char kLocal[] = "local";
constexpr char kMemcpy[] = "memcpy";
constexpr char kSockets[] = "sockets";

struct Size {
  const char* name;
  std::int64_t bytes;
};
constexpr Size kSizes[] = {{"4 KB", 4 << 10},
                           {"64 KB", 64 << 10},
                           {"1 MB", 1 << 20},
                           {"25 MB", 25 << 20},
                           {"100 MB", 100 << 20}};

bool Wanted(const Size& size) {
  const std::vector<std::string> sizes = absl::GetFlag(FLAGS_sizes);
  return sizes.empty() ||
         absl::c_linear_search(sizes,
                               absl::StrReplaceAll(size.name, {{" ", ""}}));
}

// Returns the chosen transports; "local" is the threads of one process.
std::vector<std::string> ChosenTransports() {
  std::vector<std::string> chosen = absl::GetFlag(FLAGS_transports);
  if (!chosen.empty()) return chosen;
  chosen.push_back(kLocal);
  for (const comm::TransportRule& rule : comm::Transports()) {
    if (rule.transport != comm::Transport::kAuto) {
      chosen.emplace_back(rule.name);
    }
  }
  return chosen;
}

bool NeedsMpirun(const std::string& transport) {
  const comm::TransportRule* const rule = comm::FindTransport(transport);
  return rule != nullptr && rule->by_mpirun;
}

bool IsInMemory(const std::string& transport) {
  const comm::TransportRule* const rule = comm::FindTransport(transport);
  return transport == kLocal || (rule != nullptr && rule->shares_memory);
}

std::string WorkerFlag(const std::string& way) {
  return absl::StrCat("--worker=", way);
}

void AddRows(const Contestants& contestants, const std::string& transport,
             const Size& size, Report* report) {
  const std::optional<double> ours = contestants.MedianOf(transport);
  if (!ours) return;
  const int ranks = absl::GetFlag(FLAGS_ranks);
  const std::string name =
      absl::StrCat("all_reduce ", transport, " ", size.name);
  report->Add({name, ranks, "us", *ours, contestants.MedianOf(kGloo)});
  for (const char* other :
       {kRawMpi, IsInMemory(transport) ? kMemcpy : kSockets}) {
    const std::optional<double> theirs = contestants.MedianOf(other);
    if (!theirs) continue;
    report->Add({absl::StrCat(name, ", ", other), ranks, "us", *ours, theirs});
  }
}

void Compare(const char* program) {
  Contestants contestants(program, absl::GetFlag(FLAGS_ranks));
  const std::vector<std::string> transports = ChosenTransports();
  for (const std::string& transport : transports) {
    contestants.AddOurs(transport, {WorkerFlag(transport)},
                        NeedsMpirun(transport));
  }
  contestants.AddGloo(absl::GetFlag(FLAGS_python));
  contestants.AddRawMpi();
  for (const char* way : {kMemcpy, kSockets}) {
    contestants.AddOurs(way, {WorkerFlag(way)});
  }
  Report report("collectives", absl::GetFlag(FLAGS_json)
                                   ? Report::Form::kJson
                                   : Report::Form::kTable);
  for (const Size& size : kSizes) {
    if (!Wanted(size)) continue;
    contestants.Measure(size.bytes, absl::GetFlag(FLAGS_rounds));
    for (const std::string& transport : transports) {
      AddRows(contestants, transport, size, &report);
    }
  }
  report.End();
}

// Prints the rows of one transport, one for each size.
void PrintTable(const char* program, const std::string& transport) {
  using comm::internal::Algorithm;
  const int ranks = absl::GetFlag(FLAGS_ranks);
  Contestants contestants(program, ranks);
  const auto name = [&](Algorithm algorithm) {
    return absl::StrCat(transport, " ", AlgorithmName(algorithm));
  };
  for (Algorithm algorithm : {Algorithm::kExchange, Algorithm::kTwoStep}) {
    contestants.AddOurs(
        name(algorithm),
        {WorkerFlag(transport),
         absl::StrCat("--algorithm=", AlgorithmName(algorithm))},
        NeedsMpirun(transport));
  }
  for (std::int64_t bytes = 1 << 10; bytes <= 16 << 20; bytes *= 4) {
    contestants.Measure(bytes, absl::GetFlag(FLAGS_rounds));
    const Algorithm chosen = comm::internal::ChooseAlgorithm(
        {/*tree=*/true, /*targets=*/ranks, /*members=*/ranks,
         static_cast<std::size_t>(bytes)});
    const auto us = [&](Algorithm algorithm) {
      return contestants.MedianOf(name(algorithm)).value_or(0);
    };
    absl::PrintF("%-10s %5d %10d %12.1f %12.1f  %s\n", transport, ranks, bytes,
                 us(Algorithm::kExchange), us(Algorithm::kTwoStep),
                 std::string(AlgorithmName(chosen)));
    std::fflush(stdout);
  }
}

void PrintTables(const char* program) {
  absl::PrintF("%-10s %5s %10s %12s %12s  %s\n", "transport", "ranks", "bytes",
               "exchange us", "two_step us", "chosen");
  for (const std::string& transport : ChosenTransports()) {
    if (transport != kLocal) PrintTable(program, transport);
  }
}

int RunAsWorker() {
  WorkerOptions options;
  options.way = absl::GetFlag(FLAGS_worker);
  options.ranks = absl::GetFlag(FLAGS_ranks);
  options.folder = absl::GetFlag(FLAGS_folder);
  options.algorithm = absl::GetFlag(FLAGS_algorithm);
  options.rank = absl::GetFlag(FLAGS_rank);
  options.address = absl::GetFlag(FLAGS_address);
  const absl::Status status = RunWorker(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s: %s\n", options.way.c_str(),
               std::string(status.message()).c_str());
  return 1;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "Times all_reduce over each transport beside its peers.");
  absl::ParseCommandLine(argc, argv);
  // The trainer does the same.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  if (!absl::GetFlag(FLAGS_worker).empty()) return troupe::bench::RunAsWorker();
  if (absl::GetFlag(FLAGS_table)) {
    troupe::bench::PrintTables(argv[0]);
  } else {
    troupe::bench::Compare(argv[0]);
  }
  return 0;
}
