// Measures how much of its gradient reduction a training step overlaps: the MLP
// of 25 million parameters on two hosts joined by a slow network, beside
// PyTorch's DDP over Gloo on the same hosts.
//
//   bazel build -c opt //tools:trainer //tools/bench/...
//   bazel-bin/tools/bench/overlap/overlap --python=$HOME/peer/bin/python
//   ... --rates=1gbit --batches=64,256 --steps=10
//   ... --across=false                   no steps that overlap
//   ... --set=comm.bucket_bytes=5MiB     more settings for the trainer
//   ... --json                            one JSON object per row
//
// The hosts are network namespaces (tools/network), which need root. Both share
// this machine's cores, so "alone" is a run on each of them at the same time,
// without the network. Rows, in milliseconds:
//
//     reduction alone, 1gbit          an all-reduce of all gradients
//     batch 64: compute alone         a step of one rank, beside PyTorch's
//     batch 64: step, 1gbit           a step of two ranks, beside DDP's
//     batch 64: step, bound           the same, beside its bound
//     batch 64: first step, bound     the first step, beside that bound
//     batch 64: across, 1gbit         with comm.cross_step, beside DDP's
//     batch 64: across, bound         the same, beside its bound
//
// The bound is the least time that a step can take; the ratio is the fraction
// of it that is reached. If the network is slower, the bound is the forward,
// the backward up to the first bucket (by the timeline of the run alone) and
// the whole reduction; if compute is slower, all of compute and the reduction
// of the last bucket. Across steps it is the longer of compute and reduction.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "tools/bench/overlap/step_times.h"
#include "tools/bench/peer.h"
#include "tools/bench/report.h"
#include "tools/network/network_hosts.h"
#include "tools/network/run_programs.h"

ABSL_FLAG(std::vector<std::string>, rates,
          (std::vector<std::string>{"1gbit", "10gbit"}),
          "limits on a host's sending rate, in the notation of tc(8)");
ABSL_FLAG(std::vector<std::string>, batches,
          (std::vector<std::string>{"64", "256", "512", "1024"}),
          "samples per step and rank");
ABSL_FLAG(int, steps, 10, "steps of a run, after two to warm up");
ABSL_FLAG(int, rounds, 3, "alternating rounds of each case; the median counts");
ABSL_FLAG(bool, across, true, "whether to run with comm.cross_step, too");
ABSL_FLAG(bool, json, false, "print one JSON object a row");
ABSL_FLAG(std::vector<std::string>, set, {}, "settings of the trainer");
ABSL_FLAG(std::string, python, "",
          "a Python with PyTorch, to measure the peer");
ABSL_FLAG(std::string, trainer, "bazel-bin/tools/trainer", "the trainer");
ABSL_FLAG(std::string, collectives,
          "bazel-bin/tools/bench/collectives/collectives",
          "program of that benchmark, whose workers reduce");

namespace troupe::bench {
namespace {

using Words = std::vector<std::string>;

constexpr int kHosts = 2;
constexpr int kWarmUp = 2;
constexpr std::int64_t kWide = 2236;
constexpr std::int64_t kLayers = 5;
constexpr std::int64_t kGradientBytes = kLayers * kWide * kWide * 4;

double Bound(const StepTimes& alone, double reduction) {
  return std::max(alone.to_first_bucket_ms + reduction,
                  alone.step_ms + reduction / kLayers);
}

// Two programs that measure together; the leader ends both.
struct Pair {
  std::unique_ptr<Peer> follower;
  std::unique_ptr<Peer> leader;  // ends first, and thereby the other

  void End() {
    leader.reset();
    follower.reset();
  }
};

// Times of a case by round, in milliseconds.
struct Figures {
  std::vector<double> alone, to_first_bucket, step, first_step, across;
  std::vector<double> their_alone, ddp;
};

class Bench {
 public:
  Bench(const char* program, std::string folder)
      : script_(FindScript(program, "tools/bench/overlap/peer_overlap.py")),
        folder_(std::move(folder)),
        report_("overlap", absl::GetFlag(FLAGS_json) ? Report::Form::kJson
                                                     : Report::Form::kTable) {}

  absl::Status Run() {
    const std::string trainer = absl::GetFlag(FLAGS_trainer);
    TROUPE_RETURN_IF_ERROR(network::RunPrograms(
        {{trainer, "certs", absl::StrCat("--dir=", CertsFolder()),
          absl::StrCat("--hosts=", network::NetworkHosts::address(0), ",",
                       network::NetworkHosts::address(1))}}));
    for (const std::string& rate : absl::GetFlag(FLAGS_rates)) {
      TROUPE_RETURN_IF_ERROR(RunRate(rate));
    }
    report_.End();
    return absl::OkStatus();
  }

 private:
  std::string CertsFolder() const { return folder_ + "/certs"; }

  absl::Status RunRate(const std::string& rate) {
    network::NetworkOptions options;
    options.hosts = kHosts;
    options.rate = rate;
    TROUPE_ASSIGN_OR_RETURN(hosts_, network::NetworkHosts::Make(options));
    TROUPE_ASSIGN_OR_RETURN(const double reduction, ReductionMs(rate));
    report_.Add({absl::StrCat("reduction alone, ", rate), kHosts, "ms",
                 reduction, std::nullopt});
    TROUPE_RETURN_IF_ERROR(StartPeers());
    for (const std::string& text : absl::GetFlag(FLAGS_batches)) {
      int batch = 0;
      if (!absl::SimpleAtoi(text, &batch) || batch < 1) {
        return absl::InvalidArgumentError(
            absl::StrCat("--batches=", text, ": must be a number from 1 on"));
      }
      TROUPE_RETURN_IF_ERROR(RunBatch(rate, batch, reduction));
    }
    alone_.End();
    ddp_.End();
    return absl::OkStatus();
  }

  // Returns the milliseconds of an all-reduce of all gradients over the links
  // that the trainer uses.
  absl::StatusOr<double> ReductionMs(const std::string& rate) {
    const std::string folder = absl::StrCat(folder_, "/links-", rate);
    std::filesystem::create_directory(folder);
    const auto start = [&](int rank) {
      return Peer::StartProgram(hosts_->Command(
          rank,
          {absl::GetFlag(FLAGS_collectives), "--worker=tcp",
           absl::StrCat("--ranks=", kHosts), absl::StrCat("--rank=", rank),
           absl::StrCat("--folder=", folder),
           absl::StrCat("--address=", network::NetworkHosts::address(rank))}));
    };
    Pair pair;
    TROUPE_ASSIGN_OR_RETURN(pair.follower, start(1));
    TROUPE_ASSIGN_OR_RETURN(pair.leader, start(0));
    TROUPE_ASSIGN_OR_RETURN(const double us, pair.leader->Measure(absl::StrCat(
                                                 kGradientBytes, " 1 5")));
    return us / 1000;
  }

  absl::Status StartPeers() {
    const std::string python = absl::GetFlag(FLAGS_python);
    if (python.empty()) return absl::OkStatus();
    const auto start = [&](int host, int rank, int ranks) {
      return Peer::StartProgram(hosts_->Command(
          host, {python, script_, absl::StrCat("--rank=", rank),
                 absl::StrCat("--ranks=", ranks),
                 absl::StrCat("--master=", network::NetworkHosts::address(0),
                              ":29555")}));
    };
    TROUPE_ASSIGN_OR_RETURN(alone_.follower, start(1, 0, 1));
    TROUPE_ASSIGN_OR_RETURN(alone_.leader, start(0, 0, 1));
    TROUPE_ASSIGN_OR_RETURN(ddp_.follower, start(1, 1, kHosts));
    TROUPE_ASSIGN_OR_RETURN(ddp_.leader, start(0, 0, kHosts));
    return absl::OkStatus();
  }

  absl::Status RunBatch(const std::string& rate, int batch, double reduction) {
    Figures figures;
    for (int round = 0; round < absl::GetFlag(FLAGS_rounds); ++round) {
      for (int turn = 0; turn < 2; ++turn) {
        // Ours runs first in even rounds, theirs in odd ones.
        TROUPE_RETURN_IF_ERROR((round + turn) % 2 == 0
                                   ? AddOurs(batch, &figures)
                                   : AddTheirs(batch, &figures));
      }
    }
    Show(absl::StrCat("batch ", batch, ": "), rate, reduction, figures);
    return absl::OkStatus();
  }

  void Show(const std::string& name, const std::string& rate, double reduction,
            const Figures& figures) {
    const auto median = [](const std::vector<double>& values) {
      return values.empty() ? std::nullopt
                            : std::optional<double>(Median(values));
    };
    const auto add = [&](const std::string& what, int ranks,
                         const std::vector<double>& ours,
                         std::optional<double> peer) {
      report_.Add({name + what, ranks, "ms", Median(ours), peer});
    };
    const StepTimes alone = {Median(figures.alone),
                             Median(figures.to_first_bucket)};
    const double bound = Bound(alone, reduction);
    const std::optional<double> ddp = median(figures.ddp);
    add("compute alone", 1, figures.alone, median(figures.their_alone));
    add("step, " + rate, kHosts, figures.step, ddp);
    add("step, bound", kHosts, figures.step, bound);
    add("first step, bound", kHosts, figures.first_step, bound);
    if (figures.across.empty()) return;
    add("across, " + rate, kHosts, figures.across, ddp);
    add("across, bound", kHosts, figures.across,
        std::max(alone.step_ms, reduction));
  }

  absl::Status AddOurs(int batch, Figures* figures) {
    TROUPE_ASSIGN_OR_RETURN(const StepTimes alone, RunAlone(batch));
    figures->alone.push_back(alone.step_ms);
    figures->to_first_bucket.push_back(alone.to_first_bucket_ms);
    TROUPE_ASSIGN_OR_RETURN(const StepTimes apart,
                            RunTogether(batch, /*across=*/false));
    figures->step.push_back(apart.step_ms);
    figures->first_step.push_back(apart.first_step_ms);
    if (!absl::GetFlag(FLAGS_across)) return absl::OkStatus();
    TROUPE_ASSIGN_OR_RETURN(const StepTimes across,
                            RunTogether(batch, /*across=*/true));
    figures->across.push_back(across.step_ms);
    return absl::OkStatus();
  }

  std::string TraceOf(int host) const {
    return absl::StrCat(folder_, "/trace-", host, ".json");
  }

  // Runs a job of one rank on each host at the same time; the slower counts.
  absl::StatusOr<StepTimes> RunAlone(int batch) {
    std::vector<Words> programs;
    for (int host = 0; host < kHosts; ++host) {
      Words words = {absl::GetFlag(FLAGS_trainer)};
      AddSettings(/*ranks=*/1, batch, /*across=*/false, TraceOf(host), &words);
      programs.push_back(hosts_->Command(host, std::move(words)));
    }
    TROUPE_RETURN_IF_ERROR(network::RunPrograms(programs));
    StepTimes slower;
    for (int host = 0; host < kHosts; ++host) {
      TROUPE_ASSIGN_OR_RETURN(const StepTimes times,
                              ReadStepTimes(TraceOf(host), kWarmUp));
      if (times.step_ms > slower.step_ms) slower = times;
    }
    return slower;
  }

  // Runs one job, a rank on each host.
  absl::StatusOr<StepTimes> RunTogether(int batch, bool across) {
    std::vector<Words> programs;
    for (int host = 0; host < kHosts; ++host) {
      Words words = {absl::GetFlag(FLAGS_trainer),
                     "launch",
                     absl::StrCat("--nnodes=", kHosts),
                     absl::StrCat("--node-rank=", host),
                     absl::StrCat("--master=",
                                  network::NetworkHosts::address(0), ":29400"),
                     "--nproc-per-node=1",
                     absl::StrCat("--certs=", CertsFolder(), "/",
                                  network::NetworkHosts::address(host)),
                     "--"};
      AddSettings(kHosts, batch, across, TraceOf(0), &words);
      programs.push_back(hosts_->Command(host, std::move(words)));
    }
    TROUPE_RETURN_IF_ERROR(network::RunPrograms(programs));
    return ReadStepTimes(TraceOf(0), kWarmUp);
  }

  static void AddSettings(int ranks, int batch, bool across,
                          const std::string& trace, Words* words) {
    const int steps = absl::GetFlag(FLAGS_steps) + kWarmUp + 1;
    words->insert(words->end(), {"train", absl::StrCat("--ranks=", ranks)});
    Words settings = {
        "model.kind=mlp", "model.widths=2236,2236,2236,2236",
        "model.bias=false", "data.kind=synthetic", "data.input_shape=2236",
        "data.num_classes=2236", "data.test_count=64", "optimizer.lr=0.01",
        // Each layer is a bucket, and no evaluation runs.
        "train.eval_every=1000000", "log.progress=off",
        absl::StrCat("comm.cross_step=", across ? "true" : "false"),
        absl::StrCat("data.train_count=", 2 * batch * ranks),
        absl::StrCat("train.global_batch_size=", batch * ranks),
        absl::StrCat("train.steps=", steps), "trace.first_step=1",
        absl::StrCat("trace.steps=", steps),
        absl::StrCat("trace.file=", trace)};
    for (const std::string& more : absl::GetFlag(FLAGS_set)) {
      settings.push_back(more);
    }
    for (const std::string& setting : settings) {
      words->push_back(absl::StrCat("--set=", setting));
    }
  }

  absl::Status AddTheirs(int batch, Figures* figures) {
    if (ddp_.leader == nullptr) return absl::OkStatus();
    const std::string question =
        absl::StrCat(batch, " ", absl::GetFlag(FLAGS_steps));
    // Both run at the same time, as ours do.
    auto neighbour = std::async(
        std::launch::async, [&] { return alone_.follower->Measure(question); });
    const absl::StatusOr<double> mine = alone_.leader->Measure(question);
    const absl::StatusOr<double> theirs = neighbour.get();
    TROUPE_RETURN_IF_ERROR(mine.status());
    TROUPE_RETURN_IF_ERROR(theirs.status());
    figures->their_alone.push_back(std::max(*mine, *theirs));
    TROUPE_ASSIGN_OR_RETURN(const double ddp, ddp_.leader->Measure(question));
    figures->ddp.push_back(ddp);
    return absl::OkStatus();
  }

  const std::string script_, folder_;
  Report report_;
  std::unique_ptr<network::NetworkHosts> hosts_;
  Pair alone_, ddp_;
};

int Main(const char* program) {
  std::string folder =
      (std::filesystem::temp_directory_path() / "overlap-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) {
    std::perror(folder.c_str());
    return 1;
  }
  const absl::Status status = Bench(program, folder).Run();
  std::filesystem::remove_all(folder);
  if (status.ok()) return 0;
  std::fprintf(stderr, "overlap: %s\n", std::string(status.message()).c_str());
  return 1;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "Times a step of two ranks over a slow network, beside its bound.");
  absl::ParseCommandLine(argc, argv);
  return troupe::bench::Main(argv[0]);
}
