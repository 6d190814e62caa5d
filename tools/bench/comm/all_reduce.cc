// Times all_reduce among ranks that are threads of this process, and, in
// alternating rounds, torch.distributed's over Gloo among as many processes.
//
//   bazel run -c opt //tools/bench/comm:all_reduce -- --ranks=2
//   ... --python=$HOME/peer/bin/python       with PyTorch, for the peer
//   ... --events                             by Start() and Progress()
//   ... --json                               one JSON object per line
//
// The collective is a sum of f32. A round is divided into blocks of about a
// millisecond; its figure is their median on rank 0, and that of a case the
// median of its rounds. A program that takes a core for a while then spoils
// some blocks, but neither figure.

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_cat.h"
#include "comm/local/local_group.h"
#include "tools/bench/peer.h"
#include "tools/bench/report.h"

ABSL_FLAG(int, ranks, 2, "ranks: threads of ours, processes of the peer");
ABSL_FLAG(int, rounds, 7, "rounds of each case; the median counts");
ABSL_FLAG(bool, json, false, "print one JSON object a line");
ABSL_FLAG(bool, events, false, "use Start() and Progress(), not RunInline()");
ABSL_FLAG(std::string, python, "",
          "a Python with PyTorch, to measure the peer");

namespace troupe::bench {
namespace {

struct Case {
  const char* name;
  std::int64_t bytes;
  int ours_block;  // number of all_reduces in one block
  int peer_block;
};

// Number of blocks in a round, after one to warm up.
constexpr int kBlocks = 20;

constexpr Case kCases[] = {
    {"4 KB", 4 << 10, 1000, 5},
    {"64 KB", 64 << 10, 500, 5},
    {"1 MB", 1 << 20, 50, 2},
    {"25 MB", 25 << 20, 2, 1},
};

absl::Status ReduceOnce(comm::Communicator& comm,
                        const comm::Collective& collective, bool events) {
  if (!events) return comm.RunInline(collective, absl::Seconds(30));
  absl::StatusOr<comm::Event> event = comm.Start(collective, comm::Event());
  if (!event.ok()) return event.status();
  for (int idle = 0; !event->ready();) {
    if (comm.Progress() || ++idle < 1000) continue;
    std::this_thread::yield();
  }
  return event->status();
}

// Returns the time of one all_reduce in microseconds.
double Measure(const Case& c, int ranks, bool events) {
  comm::LocalGroupOptions options;
  options.size = ranks;
  const auto group = comm::MakeLocalGroup(options);
  nn::CachingAllocator allocator;
  std::vector<double> us;  // time per all_reduce of each block, on rank 0
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const comm::Collective sum = comm::AllReduce(
          comm::ReduceOp::kSum,
          nn::Tensor::Zeros({c.bytes / 4}, nn::DType::kF32, allocator));
      for (int block = 0; block <= kBlocks; ++block) {
        const auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < c.ours_block; ++i) {
          const absl::Status status = ReduceOnce(*group[rank], sum, events);
          TROUPE_CHECK(status.ok(), "nothing aborts this group");
        }
        const std::chrono::duration<double, std::micro> time =
            std::chrono::steady_clock::now() - begin;
        if (rank == 0 && block > 0) us.push_back(time.count() / c.ours_block);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return Median(us);
}

std::unique_ptr<Peer> StartPeer(const char* program, int ranks) {
  const std::string python = absl::GetFlag(FLAGS_python);
  if (python.empty()) return nullptr;
  absl::StatusOr<std::unique_ptr<Peer>> peer = Peer::Start(
      python, FindScript(program, "tools/bench/comm/peer_all_reduce.py"),
      {absl::StrCat("--ranks=", ranks)});
  if (peer.ok()) return *std::move(peer);
  std::fprintf(stderr, "%s\n", peer.status().ToString().c_str());
  return nullptr;
}

void Run(const char* program) {
  const int ranks = absl::GetFlag(FLAGS_ranks);
  const int rounds = absl::GetFlag(FLAGS_rounds);
  const bool events = absl::GetFlag(FLAGS_events);
  std::unique_ptr<Peer> peer = StartPeer(program, ranks);
  Report report("all_reduce", absl::GetFlag(FLAGS_json) ? Report::Form::kJson
                                                        : Report::Form::kTable);
  for (const Case& c : kCases) {
    std::vector<double> ours;
    std::vector<double> theirs;
    for (int round = 0; round < rounds; ++round) {
      ours.push_back(Measure(c, ranks, events));
      if (peer == nullptr) continue;
      const absl::StatusOr<double> us =
          peer->Measure(absl::StrCat(c.bytes, " ", c.peer_block, " ", kBlocks));
      if (us.ok()) {
        theirs.push_back(*us);
      } else {
        std::fprintf(stderr, "%s\n", us.status().ToString().c_str());
        peer.reset();
      }
    }
    Row row{events ? absl::StrCat(c.name, ", events") : c.name, ranks, "us",
            Median(ours), std::nullopt};
    if (!theirs.empty()) row.peer = Median(theirs);
    report.Add(row);
  }
  report.End();
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "Times all_reduce in shared memory beside torch.distributed.");
  absl::ParseCommandLine(argc, argv);
  troupe::bench::Run(argv[0]);
  return 0;
}
