// Times whole training steps of models on the CPU, one thread per rank, and, in
// alternating rounds, PyTorch's.
//
//   bazel run //tools/bench/nn -- --python=$HOME/peer/bin/python
//   ... --case=resnet18,gpt --precision=bf16     some rows
//   ... --ranks=1 --rounds=9 --seconds=4         longer, and more often
//   ... --breakdown                              where the time of a step goes
//   ... --memory --rounds=0                      memory, and no times
//   ... --json                                   one JSON object a row
//
// Cases are those of train_case.h. Ours runs the whole engine: actors, loader,
// samples gathered from memory, the trainer's configuration (bf16 with
// parameters and activations in bf16, and f32 master values). PyTorch is the
// best of eager, channels_last and torch.compile, with autocast for bf16; DDP
// over Gloo on several ranks; its batch is one fixed tensor, which favours it.
//
// contest.h describes the rows of time, breakdown.h those of --breakdown. Each
// row of --memory is measured on one rank in a new process: peak_memory, the
// peak resident memory of eleven steps above that of the idle process (before
// the model is made, with PyTorch imported); and saved_activations
// (saved_activations.h) of 12 layers of GPT, also with every block recomputed.

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
#include "actors/job.h"
#include "base/check.h"
#include "tools/bench/figure_table.h"
#include "tools/bench/nn/breakdown.h"
#include "tools/bench/nn/contest.h"
#include "tools/bench/nn/saved_activations.h"
#include "tools/bench/nn/step_work.h"
#include "tools/bench/peer.h"
#include "tools/bench/torch_train.h"
#include "tools/bench/train_case.h"
#include "tools/profile/process_memory.h"

ABSL_FLAG(std::vector<std::string>, case, {},
          "resnet18, resnet50, vgg11, gpt, vit_tiny, mnist_mlp, toy_cnn, "
          "toy_mlp; or mlp_25m, gpt12, gpt12_recomputed. Default: the first "
          "eight, and the last two with --memory");
ABSL_FLAG(std::vector<std::string>, precision,
          std::vector<std::string>({"f32", "bf16"}), "f32, bf16, or both");
ABSL_FLAG(std::vector<std::string>, ranks, std::vector<std::string>({"1", "2"}),
          "numbers of ranks");
ABSL_FLAG(int, rounds, 5, "alternating rounds; the median counts; 0: no times");
ABSL_FLAG(double, seconds, 2, "time of one contestant and mode in a round");
ABSL_FLAG(bool, memory, false, "measure memory, too");
ABSL_FLAG(bool, breakdown, false, "break down the time of our step, too");
ABSL_FLAG(bool, json, false, "print one JSON object a row");
ABSL_FLAG(std::string, python, "", "a Python with PyTorch, to measure it, too");
ABSL_FLAG(std::string, once, "",
          "memory_growth: measures --case in this process; the benchmark "
          "starts itself with it");

namespace troupe::bench {
namespace {

constexpr char kUsage[] =
    "Times training steps of models on the CPU beside PyTorch's.\n\n"
    "  bazel run //tools/bench/nn -- --python=$HOME/peer/bin/python\n"
    "  ... --case=resnet18,gpt --precision=bf16   some rows\n"
    "  ... --ranks=1 --rounds=9 --seconds=4       longer, and more often\n"
    "  ... --breakdown                            where a step's time goes\n"
    "  ... --memory --rounds=0                    memory, and no times\n"
    "  ... --json                                 one JSON object a row\n\n"
    "PyTorch is the best of eager, channels_last and torch.compile, with\n"
    "autocast for bf16. docs/performance.md says what came out.";

constexpr char kMemoryGrowth[] = "memory_growth";
constexpr int kMemorySteps = 11;
// Number of batches in the data set when memory is measured: with more, the
// samples would take more memory than all else. The peer has one.
constexpr int kMemoryBatches = 2;

constexpr const char* kTimedCases[] = {"resnet18", "resnet50", "vgg11",
                                       "gpt",      "vit_tiny", "mnist_mlp",
                                       "toy_cnn",  "toy_mlp"};
constexpr char kSaves[] = "gpt12";
constexpr char kRecomputes[] = "gpt12_recomputed";

struct Options {
  std::vector<std::string> timed, measured;  // cases for time, for memory
  std::vector<std::string> precisions;
  ContestOptions contest;
};

absl::StatusOr<Options> ReadFlags() {
  Options options;
  options.timed = absl::GetFlag(FLAGS_case);
  options.measured = options.timed;
  if (options.timed.empty()) {
    options.timed.assign(std::begin(kTimedCases), std::end(kTimedCases));
    options.measured = options.timed;
    options.measured.insert(options.measured.end(), {kSaves, kRecomputes});
  }
  if (!absl::GetFlag(FLAGS_memory)) options.measured.clear();
  options.precisions = absl::GetFlag(FLAGS_precision);
  for (const std::string& precision : options.precisions) {
    if (precision == "f32" || precision == "bf16") continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--precision=", precision, ": give f32, bf16, or both"));
  }
  options.contest.ranks.clear();
  for (const std::string& word : absl::GetFlag(FLAGS_ranks)) {
    int ranks = 0;
    if (!absl::SimpleAtoi(word, &ranks) || ranks < 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--ranks=", word, ": give numbers from 1 on, such as 1,2"));
    }
    options.contest.ranks.push_back(ranks);
  }
  options.contest.rounds = absl::GetFlag(FLAGS_rounds);
  options.contest.seconds = absl::GetFlag(FLAGS_seconds);
  return options;
}

// Measures the one figure that this process was started for.
absl::Status RunOnce(const CaseAndPrecision& what) {
  const double idle_mib = tools::MemoryMiB();
  TROUPE_ASSIGN_OR_RETURN(actors::JobSpec spec, what.Job(/*ranks=*/1));
  const std::int64_t samples = kMemoryBatches * spec.plan.global_batch_size;
  TROUPE_ASSIGN_OR_RETURN(
      spec,
      what.Job(/*ranks=*/1, {absl::StrCat("data.train_count=", samples)}));
  spec.steps = kMemorySteps;
  TROUPE_RETURN_IF_ERROR(actors::RunJob(spec).status());
  std::printf("%g\n", tools::PeakMemoryMiB() - idle_mib);
  return absl::OkStatus();
}

class Bench {
 public:
  Bench(const char* program, Options options)
      : options_(std::move(options)),
        torch_(program, absl::GetFlag(FLAGS_python)),
        table_("nn", absl::GetFlag(FLAGS_json) ? Report::Form::kJson
                                               : Report::Form::kTable) {}

  // Measures all rows. If one fails, prints why and goes on with the next.
  absl::Status Run() {
    for (const std::string& precision : options_.precisions) {
      for (const std::string& name : options_.timed) {
        Try(&Bench::Time, {name, precision});
      }
    }
    for (const std::string& precision : options_.precisions) {
      for (const std::string& name : options_.measured) {
        Try(&Bench::Measure, {name, precision});
      }
      AddRecomputed(precision);
      table_.Print();
    }
    table_.End();
    return first_error_;
  }

 private:
  void Try(absl::Status (Bench::*measure)(const CaseAndPrecision&),
           const CaseAndPrecision& what) {
    const absl::Status status = (this->*measure)(what);
    table_.Print();
    if (status.ok()) return;
    std::fprintf(stderr, "%s: %s\n", what.Label().c_str(),
                 status.ToString().c_str());
    first_error_.Update(status);
  }

  absl::Status Time(const CaseAndPrecision& what) {
    Contest contest(what, options_.contest, torch_, table_);
    TROUPE_RETURN_IF_ERROR(contest.Run());
    if (!absl::GetFlag(FLAGS_breakdown)) return absl::OkStatus();
    TROUPE_ASSIGN_OR_RETURN(const actors::JobSpec spec, what.Job(/*ranks=*/1));
    TROUPE_ASSIGN_OR_RETURN(const double flops, StepFlops(spec));
    const auto job = [&](int ranks) { return what.Job(ranks); };
    return AddBreakdown(what.Label(), job, options_.contest.ranks, flops,
                        MeasurePeak(what.is_bf16()), options_.contest.seconds,
                        table_);
  }

  absl::Status Measure(const CaseAndPrecision& what) {
    const std::vector<std::string> arguments = {
        absl::StrCat("--once=", kMemoryGrowth),
        absl::StrCat("--case=", what.name),
        absl::StrCat("--precision=", what.precision)};
    Figure& figure = table_.At(absl::StrCat("peak_memory ", what.Label()),
                               /*ranks=*/1, "MiB", Better::kLower);
    TROUPE_ASSIGN_OR_RETURN(const double ours, AskSelfOnce(arguments));
    figure.ours = {ours};
    if (torch_.is_there()) {
      TROUPE_ASSIGN_OR_RETURN(const double theirs, torch_.AskOnce(arguments));
      figure.peer = {theirs};
    }
    if (what.name != kSaves && what.name != kRecomputes) {
      return absl::OkStatus();
    }
    TROUPE_ASSIGN_OR_RETURN(const actors::JobSpec spec, what.Job(/*ranks=*/1));
    TROUPE_ASSIGN_OR_RETURN(const double saved, SavedActivationMiB(spec));
    Saved(what).ours = {saved};
    return absl::OkStatus();
  }

  Figure& Saved(const CaseAndPrecision& what) {
    return table_.At(absl::StrCat("saved_activations ", what.Label()),
                     /*ranks=*/1, "MiB", Better::kLower);
  }

  // Adds the fraction of the activations that is left if every block is
  // recomputed.
  void AddRecomputed(const std::string& precision) {
    const Figure& all = Saved({kSaves, precision});
    const Figure& left = Saved({kRecomputes, precision});
    if (all.ours.empty() || left.ours.empty()) return;
    Figure& part = table_.At(absl::StrCat("recomputed gpt12 ", precision),
                             /*ranks=*/1, "of saved", Better::kLower);
    part.ours = {left.ours[0] / all.ours[0]};
  }

  const Options options_;
  TorchTrain torch_;
  FigureTable table_;
  absl::Status first_error_;
};

absl::Status Main(const char* program) {
  TROUPE_ASSIGN_OR_RETURN(Options options, ReadFlags());
  const std::string once = absl::GetFlag(FLAGS_once);
  if (once.empty()) return Bench(program, std::move(options)).Run();
  if (once != kMemoryGrowth || options.timed.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--once=", once, ": must be ", kMemoryGrowth,
                     ", with one --case and one --precision"));
  }
  return RunOnce({options.timed[0], options.precisions[0]});
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(troupe::bench::kUsage);
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = troupe::bench::Main(argv[0]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
