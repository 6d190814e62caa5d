// Times whole training steps of small models, data parallel in this process,
// and, in alternating rounds, PyTorch's: a plain module on one rank, DDP over
// Gloo on more.
//
//   bazel run //tools/bench/ddp_step -- --python=$HOME/peer/bin/python
//   ... --case=toy_mlp,mlp_25m --ranks=2      some cases, one number of ranks
//   ... --seconds=2 --rounds=9                longer, and more often
//   ... --json                                one JSON object a row
//   ... --zero=1,3                            beside stages of ZeRO
//   ... --processes=2                         our ranks in two processes
//   ... --set=comm.inline_bytes=0             our job with further settings
//
// Rows: steps per second of a case, by ranks; first_step, the time from the
// start of a process to the end of its first step; peak_memory, the peak
// resident memory (the peer's is the sum over its processes, as its ranks share
// less); scaling_25m, the time of a 2-rank step of mlp_25m over that of a
// 1-rank step. With --zero, the rows of 2 ranks also come with each stage of
// ZeRO, and the time of such a step over that of a plain one in the same turn.
// The peer's stages are ZeroRedundancyOptimizer (1) and fully_shard, which
// keeps whole parameters between forward and backward (2) or not (3).
//
// Ours runs the whole engine: actors, loader, samples gathered from memory. The
// peer's batch is one fixed tensor, which favours the peer. Several ranks of
// the peer are always processes.

#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "actors/job.h"
#include "actors/step_seconds.h"
#include "base/check.h"
#include "tools/bench/figure_table.h"
#include "tools/bench/peer.h"
#include "tools/bench/process_job.h"
#include "tools/bench/report.h"
#include "tools/bench/torch_train.h"
#include "tools/bench/train_case.h"
#include "tools/profile/process_memory.h"

ABSL_FLAG(std::vector<std::string>, case, {},
          "toy_mlp, toy_cnn, mnist_mlp, mlp_25m, first_step, peak_memory; "
          "default: all");
ABSL_FLAG(int, ranks, 0, "ranks, with --case; default: 1 and 2");
ABSL_FLAG(double, seconds, 1,
          "time of one case, contestant and round; mlp_25m has four turns of "
          "half of it");
ABSL_FLAG(int, rounds, 5, "alternating rounds; the median counts");
ABSL_FLAG(bool, json, false, "print one JSON object a row");
ABSL_FLAG(std::string, python, "",
          "a Python with PyTorch, to measure the peer");
ABSL_FLAG(std::int64_t, inline_bytes, -1,
          "gradient bytes up to which the compute strand reduces; below 0: "
          "measured, as a job does");
ABSL_FLAG(bool, fuse_updates, true,
          "reduce and update in one pass if the compute strand reduces");
ABSL_FLAG(
    std::vector<std::string>, zero, {},
    "stages of ZeRO under which steps of several ranks are timed, too, and "
    "compared with plain ones: 1, 2, 3");
ABSL_FLAG(int, processes, 1,
          "processes of this machine that have our ranks, where there are as "
          "many; a turn then starts them anew");
ABSL_FLAG(std::vector<std::string>, set, {},
          "further settings of our job, such as comm.cross_step=true");
ABSL_FLAG(std::string, once, "",
          "first_step, peak_memory or rate: measures that of --case in this "
          "process; the benchmark starts itself with it");

namespace troupe::bench {
namespace {

constexpr char kFirstStep[] = "first_step";
constexpr char kPeakMemory[] = "peak_memory";
constexpr char kOnceRate[] = "rate";
constexpr int kMemorySteps = 11;
constexpr const char* kCases[] = {"toy_mlp", "toy_cnn", "mnist_mlp", "mlp_25m"};
constexpr char kRate[] = "steps/s";
// This case is measured in more and shorter turns than the others: a quotient
// of two times has the noise of both, and if the machine's speed changes
// between them, only the median of many turns is reliable.
constexpr char kScalingCase[] = "mlp_25m";
constexpr int kScalingTurns = 4;

// Returns the stages of --zero.
absl::StatusOr<std::vector<int>> ZeroStages() {
  std::vector<int> stages;
  for (const std::string& text : absl::GetFlag(FLAGS_zero)) {
    int stage = 0;
    if (!absl::SimpleAtoi(text, &stage) || stage < 1 ||
        stage > pipeline::kZeroStageMax) {
      return absl::InvalidArgumentError(
          absl::StrCat("--zero: \"", text, "\" is no stage; choose from 1 to ",
                       pipeline::kZeroStageMax));
    }
    stages.push_back(stage);
  }
  return stages;
}

// Returns a job under a stage of ZeRO; 0: a plain one.
absl::StatusOr<actors::JobSpec> MakeJob(const std::string& name, int ranks,
                                        int stage = 0) {
  TROUPE_ASSIGN_OR_RETURN(actors::JobSpec spec,
                          MakeTrainJob(name, ranks, absl::GetFlag(FLAGS_set)));
  if (absl::GetFlag(FLAGS_inline_bytes) >= 0) {
    spec.plan.inline_bytes = absl::GetFlag(FLAGS_inline_bytes);
  }
  spec.plan.fuse_updates = absl::GetFlag(FLAGS_fuse_updates);
  spec.plan.zero_stage = stage;
  return spec;
}

// Answers when the first step has completed, as the peer does, not when the job
// has shut down.
class FirstStep : public actors::JobObserver {
 public:
  void OnSteps(absl::Span<const actors::StepReport>) override {
    if (std::exchange(answered_, true)) return;
    std::puts("1");
    std::fflush(stdout);
  }

 private:
  bool answered_ = false;
};

// Runs the one measurement of a process that OnceRound() started.
absl::Status RunOnce(const std::string& what, const std::string& name) {
  if (what == kOnceRate) {
    TROUPE_ASSIGN_OR_RETURN(const std::vector<int> stages, ZeroStages());
    const int ranks = absl::GetFlag(FLAGS_ranks);
    ProcessJob job;
    job.make = [&] {
      return MakeJob(name, ranks, stages.empty() ? 0 : stages[0]);
    };
    job.processes = absl::GetFlag(FLAGS_processes);
    TROUPE_ASSIGN_OR_RETURN(
        const double rate,
        StepsPerSecondInProcesses(job, absl::GetFlag(FLAGS_seconds)));
    std::printf("%g\n", rate);
    return absl::OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(actors::JobSpec spec,
                          MakeJob(name, absl::GetFlag(FLAGS_ranks)));
  if (what == kFirstStep) {
    spec.steps = 1;
    FirstStep observer;
    return actors::RunJob(spec, &observer).status();
  }
  spec.steps = kMemorySteps;
  TROUPE_RETURN_IF_ERROR(actors::RunJob(spec).status());
  std::printf("%g\n", tools::PeakMemoryMiB());
  return absl::OkStatus();
}

class Bench {
 public:
  explicit Bench(const char* program)
      : torch_(program, absl::GetFlag(FLAGS_python)),
        table_("ddp_step", absl::GetFlag(FLAGS_json) ? Report::Form::kJson
                                                     : Report::Form::kTable) {}

  absl::Status Run() {
    TROUPE_ASSIGN_OR_RETURN(stages_, ZeroStages());
    for (int round = 0; round < absl::GetFlag(FLAGS_rounds); ++round) {
      if (!absl::GetFlag(FLAGS_json)) {
        std::fprintf(stderr, "round %d\n", round + 1);
      }
      for (const char* name : kCases) {
        if (Wanted(name)) TROUPE_RETURN_IF_ERROR(RateRounds(name));
      }
      for (const char* name : kCases) {
        if (Wanted(kFirstStep)) {
          TROUPE_RETURN_IF_ERROR(OnceRound(kFirstStep, name, /*ranks=*/1));
        }
      }
    }
    AddScaling();
    // Memory does not vary, so one measurement is enough.
    for (const char* name : kCases) {
      for (int ranks : Ranks()) {
        if (!Wanted(kPeakMemory)) continue;
        TROUPE_RETURN_IF_ERROR(OnceRound(kPeakMemory, name, ranks));
      }
    }
    table_.Print();
    table_.End();
    return absl::OkStatus();
  }

 private:
  static bool Wanted(const std::string& name) {
    const std::vector<std::string> names = absl::GetFlag(FLAGS_case);
    return names.empty() || absl::c_linear_search(names, name);
  }
  static std::vector<int> Ranks() {
    const int ranks = absl::GetFlag(FLAGS_ranks);
    return ranks > 0 ? std::vector<int>{ranks} : std::vector<int>{1, 2};
  }

  absl::Status RateRounds(const std::string& name) {
    const bool scaling = name == kScalingCase;
    const int turns = scaling ? kScalingTurns : 1;
    const double seconds = absl::GetFlag(FLAGS_seconds) / (scaling ? 2 : 1);
    for (int turn = 0; turn < turns; ++turn) {
      for (int ranks : Ranks()) {
        TROUPE_RETURN_IF_ERROR(RateRound(name, ranks, seconds));
        for (const int stage : stages_) {
          if (ranks == 1) continue;
          TROUPE_RETURN_IF_ERROR(ZeroRound(name, ranks, stage, seconds));
        }
      }
    }
    return absl::OkStatus();
  }

  // Returns our steps per second.
  static absl::StatusOr<double> OurRate(const std::string& name, int ranks,
                                        int stage, double seconds) {
    const int processes = absl::GetFlag(FLAGS_processes);
    if (processes == 1 || ranks < processes) {
      TROUPE_ASSIGN_OR_RETURN(const actors::JobSpec spec,
                              MakeJob(name, ranks, stage));
      return actors::StepsPerSecond(spec, seconds);
    }
    std::vector<std::string> arguments = {
        absl::StrCat("--once=", kOnceRate),
        absl::StrCat("--case=", name),
        absl::StrCat("--ranks=", ranks),
        absl::StrCat("--processes=", processes),
        absl::StrCat("--seconds=", seconds),
        absl::StrCat("--inline_bytes=", absl::GetFlag(FLAGS_inline_bytes)),
        absl::StrCat("--fuse_updates=", absl::GetFlag(FLAGS_fuse_updates)),
        absl::StrCat("--set=", absl::StrJoin(absl::GetFlag(FLAGS_set), ","))};
    if (stage > 0) arguments.push_back(absl::StrCat("--zero=", stage));
    return AskSelfOnce(std::move(arguments));
  }

  // Adds a turn of steps under a stage of ZeRO, of both sides, to a row.
  absl::Status AddRates(const std::string& name, int ranks, int stage,
                        double seconds, Figure& figure) {
    TROUPE_ASSIGN_OR_RETURN(const double rate,
                            OurRate(name, ranks, stage, seconds));
    figure.ours.push_back(rate);
    if (!torch_.is_there()) return absl::OkStatus();
    TorchStep step;
    step.name = name;
    if (stage > 0) step.mode = absl::StrCat("zero", stage);
    step.ranks = ranks;
    TROUPE_ASSIGN_OR_RETURN(const double theirs,
                            torch_.StepsPerSecond(step, seconds));
    figure.peer.push_back(theirs);
    return absl::OkStatus();
  }

  absl::Status RateRound(const std::string& name, int ranks, double seconds) {
    return AddRates(name, ranks, /*stage=*/0, seconds,
                    table_.At(name, ranks, kRate, Better::kHigher));
  }

  // Times steps under a stage of ZeRO, after RateRound().
  absl::Status ZeroRound(const std::string& name, int ranks, int stage,
                         double seconds) {
    const std::string row = absl::StrCat(name, " zero ", stage);
    Figure& rates = table_.At(row, ranks, kRate, Better::kHigher);
    TROUPE_RETURN_IF_ERROR(AddRates(name, ranks, stage, seconds, rates));
    const Figure& plain = *table_.Find(name, ranks, kRate);
    Figure& quotient = table_.At(row, ranks, "x plain", Better::kLower);
    quotient.ours.push_back(plain.ours.back() / rates.ours.back());
    if (!torch_.is_there()) return absl::OkStatus();
    quotient.peer.push_back(plain.peer.back() / rates.peer.back());
    return absl::OkStatus();
  }

  // Measures in a new process.
  absl::Status OnceRound(const char* what, const std::string& name, int ranks) {
    const bool time = absl::string_view(what) == kFirstStep;
    Figure& figure = table_.At(absl::StrCat(what, " ", name), ranks,
                               time ? "s" : "MiB", Better::kLower);
    const std::vector<std::string> arguments = {
        absl::StrCat("--once=", what), absl::StrCat("--case=", name),
        absl::StrCat("--ranks=", ranks)};
    TROUPE_ASSIGN_OR_RETURN(const double ours,
                            Once(time, [&] { return AskSelfOnce(arguments); }));
    figure.ours.push_back(ours);
    if (!torch_.is_there()) return absl::OkStatus();
    TROUPE_ASSIGN_OR_RETURN(const double theirs, Once(time, [&] {
                              return torch_.AskOnce(arguments);
                            }));
    figure.peer.push_back(theirs);
    return absl::OkStatus();
  }

  // Returns the answer of `ask`, or with `time` the seconds until it came.
  template <typename Ask>
  static absl::StatusOr<double> Once(bool time, Ask ask) {
    const auto begin = std::chrono::steady_clock::now();
    TROUPE_ASSIGN_OR_RETURN(const double answer, ask());
    const std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - begin;
    return time ? took.count() : answer;
  }

  // Adds the row of scaling; step times are the inverse of rates.
  void AddScaling() {
    const Figure* one = table_.Find(kScalingCase, 1, kRate);
    const Figure* two = table_.Find(kScalingCase, 2, kRate);
    if (one == nullptr || two == nullptr) return;
    Figure& scaling = table_.At("scaling_25m", 2, "x 1 rank", Better::kLower);
    for (std::size_t i = 0; i < one->ours.size(); ++i) {
      scaling.ours.push_back(one->ours[i] / two->ours[i]);
    }
    for (std::size_t i = 0; i < one->peer.size(); ++i) {
      scaling.peer.push_back(one->peer[i] / two->peer[i]);
    }
  }

  TorchTrain torch_;
  FigureTable table_;
  std::vector<int> stages_;  // stages of ZeRO to time
};

absl::Status Main(const char* program) {
  const std::string once = absl::GetFlag(FLAGS_once);
  const std::vector<std::string> names = absl::GetFlag(FLAGS_case);
  if (!once.empty()) {
    return RunOnce(once, names.empty() ? "toy_mlp" : names[0]);
  }
  return Bench(program).Run();
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Times training steps beside PyTorch's.");
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = troupe::bench::Main(argv[0]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
