// Times the steps of a loop of one's own with DDP (troupe/ddp.h) beside the job
// with the same model, batches and optimizer, and beside PyTorch's loop: a
// plain module on one rank, DDP over Gloo on more. Rounds alternate.
//
//   bazel run //tools/bench/loop -- --python=$HOME/peer/bin/python
//   ... --case=mnist_mlp --ranks=2            one case, one number of ranks
//   ... --seconds=2 --rounds=9                longer, and more often
//   ... --json                                one JSON object a row
//
// Rows: steps per second of a case, by ranks, where the peer is PyTorch; and
// the time of a step of the loop, without and with StepInBackward(), over that
// of the job, the median over runs one after the other.
//
// The loop reads its batches with one worker, as the job does with its loader;
// the peer's batch is one fixed tensor.

#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
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
ABSL_FLAG(int, ranks, 0, "ranks; default: 1 and 2");
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
    const int only = absl::GetFlag(FLAGS_ranks);
    for (int round = 0; round < absl::GetFlag(FLAGS_rounds); ++round) {
      for (const std::string& name : absl::GetFlag(FLAGS_case)) {
        for (const int ranks :
             only > 0 ? std::vector<int>{only} : std::vector<int>{1, 2}) {
          TROUPE_RETURN_IF_ERROR(Round(name, ranks));
        }
      }
    }
    table_.Print();
    table_.End();
    return absl::OkStatus();
  }

 private:
  absl::Status Round(const std::string& name, int ranks) {
    TROUPE_ASSIGN_OR_RETURN(const actors::JobSpec spec,
                            MakeTrainJob(name, ranks));
    const double seconds = absl::GetFlag(FLAGS_seconds);
    Figure& rate = table_.At(name, ranks, "steps/s", Better::kHigher);
    Figure& step =
        table_.At(absl::StrCat(name, ", step"), ranks, "x job", Better::kLower);
    Figure& step_in_backward =
        table_.At(absl::StrCat(name, ", step in backward"), ranks, "x job",
                  Better::kLower);
    LoopOptions options;
    options.ranks = ranks;
    options.seconds = seconds / kTurns;
    for (int turn = 0; turn < kTurns; ++turn) {
      options.step_in_backward = false;
      TROUPE_ASSIGN_OR_RETURN(const double loop,
                              LoopStepsPerSecond(spec, options));
      TROUPE_ASSIGN_OR_RETURN(const double job,
                              actors::StepsPerSecond(spec, options.seconds));
      options.step_in_backward = true;
      TROUPE_ASSIGN_OR_RETURN(const double in_backward,
                              LoopStepsPerSecond(spec, options));
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
