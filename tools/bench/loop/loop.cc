// Times the steps of a loop of one's own with DDP (troupe/ddp.h) beside the job
// with the same model, batches and optimizer, and beside PyTorch's loop: a
// plain module on one rank, DDP over Gloo on more; and a loop with DataParallel
// beside job and loop with as many ranks. Rounds alternate.
//
//   bazel run //tools/bench/loop -- --python=$HOME/peer/bin/python
//   ... --case=mnist_mlp --ranks=2 --devices= one case, one number of ranks
//   ... --ranks= --devices=4                  DataParallel alone
//   ... --seconds=2 --rounds=9                longer, and more often
//   ... --json                                one JSON object a row
//
// Rows: steps per second of a case, by ranks, where the peer is PyTorch; the
// time of a step of the loop, without and with StepInBackward(), over that of
// the job; and that of a DataParallel over the job's and the loop's, by
// devices: the medians over runs one after the other.
//
// A rank of a loop reads its batches with one worker, as the job does with its
// loader, and a DataParallel with one for each device; the peer's batch is one
// fixed tensor.

#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "actors/step_seconds.h"
#include "base/check.h"
#include "tools/bench/figure_table.h"
#include "tools/bench/loop/loop_rate.h"
#include "tools/bench/report.h"
#include "tools/bench/torch_train.h"
#include "tools/bench/train_case.h"

ABSL_FLAG(std::vector<std::string>, case,
          std::vector<std::string>({"mnist_mlp", "mlp_25m"}),
          "cases of tools/bench/train_case.h whose loss is a cross entropy");
ABSL_FLAG(std::vector<std::string>, ranks, std::vector<std::string>({"1", "2"}),
          "numbers of ranks");
ABSL_FLAG(std::vector<std::string>, devices, std::vector<std::string>({"4"}),
          "numbers of a DataParallel's devices, beside as many ranks");
ABSL_FLAG(double, seconds, 1, "time of one case, contestant and round");
ABSL_FLAG(int, rounds, 5, "alternating rounds; the median counts");
ABSL_FLAG(bool, json, false, "print one JSON object a row");
ABSL_FLAG(std::string, python, "",
          "a Python with PyTorch, to measure the peer");

namespace troupe::bench {
namespace {

// A quotient of two times has the noise of both, so each contestant has several
// turns in a round.
constexpr int kTurns = 3;

class Bench {
 public:
  explicit Bench(const char* program)
      : torch_(program, absl::GetFlag(FLAGS_python)),
        table_("loop", absl::GetFlag(FLAGS_json) ? Report::Form::kJson
                                                 : Report::Form::kTable) {}

  absl::Status Run() {
    TROUPE_ASSIGN_OR_RETURN(const std::vector<int> ranks,
                            Numbers(absl::GetFlag(FLAGS_ranks)));
    TROUPE_ASSIGN_OR_RETURN(const std::vector<int> devices,
                            Numbers(absl::GetFlag(FLAGS_devices)));
    for (int round = 0; round < absl::GetFlag(FLAGS_rounds); ++round) {
      for (const std::string& name : absl::GetFlag(FLAGS_case)) {
        for (const int count : ranks) {
          TROUPE_RETURN_IF_ERROR(DdpRound(name, count));
        }
        for (const int count : devices) {
          TROUPE_RETURN_IF_ERROR(DataParallelRound(name, count));
        }
      }
    }
    table_.Print();
    table_.End();
    return absl::OkStatus();
  }

 private:
  static absl::StatusOr<std::vector<int>> Numbers(
      const std::vector<std::string>& words) {
    std::vector<int> numbers;
    for (const std::string& word : words) {
      int number = 0;
      if (!absl::SimpleAtoi(word, &number) || number < 1) {
        return absl::InvalidArgumentError(absl::StrCat(
            "--ranks and --devices: \"", word,
            "\" is no number from 1 on; write such as --ranks=1,2"));
      }
      numbers.push_back(number);
    }
    return numbers;
  }

  Figure& TimesOf(const char* other, const std::string& name, int ranks) {
    return table_.At(name, ranks, absl::StrCat("x ", other), Better::kLower);
  }

  absl::Status DdpRound(const std::string& name, int ranks) {
    TROUPE_ASSIGN_OR_RETURN(const actors::JobSpec spec,
                            MakeTrainJob(name, ranks));
    const double seconds = absl::GetFlag(FLAGS_seconds);
    Figure& rate = table_.At(name, ranks, "steps/s", Better::kHigher);
    Figure& step = TimesOf("job", absl::StrCat(name, ", step"), ranks);
    Figure& step_in_backward =
        TimesOf("job", absl::StrCat(name, ", step in backward"), ranks);
    const double turn_seconds = seconds / kTurns;
    for (int turn = 0; turn < kTurns; ++turn) {
      TROUPE_ASSIGN_OR_RETURN(
          const double loop,
          LoopStepsPerSecond(spec, LoopKind::kDdp, ranks, turn_seconds));
      TROUPE_ASSIGN_OR_RETURN(const double job,
                              actors::StepsPerSecond(spec, turn_seconds));
      TROUPE_ASSIGN_OR_RETURN(
          const double in_backward,
          LoopStepsPerSecond(spec, LoopKind::kDdpStepInBackward, ranks,
                             turn_seconds));
      rate.ours.push_back(loop);
      step.ours.push_back(job / loop);
      step_in_backward.ours.push_back(job / in_backward);
    }
    if (!torch_.is_there()) return absl::OkStatus();
    TorchStep peer;
    peer.name = name;
    peer.ranks = ranks;
    TROUPE_ASSIGN_OR_RETURN(const double theirs,
                            torch_.StepsPerSecond(peer, seconds));
    rate.peer.push_back(theirs);
    return absl::OkStatus();
  }

  absl::Status DataParallelRound(const std::string& name, int devices) {
    TROUPE_ASSIGN_OR_RETURN(const actors::JobSpec spec,
                            MakeTrainJob(name, devices));
    const std::string row = absl::StrCat(name, ", DataParallel");
    Figure& to_job = TimesOf("job", row, devices);
    Figure& to_loop = TimesOf("loop", row, devices);
    const double turn_seconds = absl::GetFlag(FLAGS_seconds) / kTurns;
    for (int turn = 0; turn < kTurns; ++turn) {
      TROUPE_ASSIGN_OR_RETURN(const double job,
                              actors::StepsPerSecond(spec, turn_seconds));
      TROUPE_ASSIGN_OR_RETURN(const double parallel,
                              LoopStepsPerSecond(spec, LoopKind::kDataParallel,
                                                 devices, turn_seconds));
      TROUPE_ASSIGN_OR_RETURN(
          const double loop,
          LoopStepsPerSecond(spec, LoopKind::kDdp, devices, turn_seconds));
      to_job.ours.push_back(job / parallel);
      to_loop.ours.push_back(loop / parallel);
    }
    return absl::OkStatus();
  }

  TorchTrain torch_;
  FigureTable table_;
};

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "Times loops of one's own beside jobs and PyTorch's loops.");
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = troupe::bench::Bench(argv[0]).Run();
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
