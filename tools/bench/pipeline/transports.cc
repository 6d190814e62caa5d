// Times the training step of a pipeline of two stages with each transport of
// activations and gradients: handles within a process; shared memory, and TCP
// over loopback, between two processes.
//
//   bazel run //tools/bench/pipeline:transports
//   ... --case=mlp8 --micro_batches=16 --schedule=zb_h1
//   ... --seconds=2 --rounds=5         longer, and more often
//   ... --json                         one JSON object per row
//
// Cases are those of //tools/bench/pipeline. The rows of two processes have the
// step within one as their peer. Each turn runs in new processes, and turns
// alternate: one round begins with one process, the next with TCP.

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "actors/job.h"
#include "base/check.h"
#include "tools/bench/process_job.h"
#include "tools/bench/report.h"
#include "tools/bench/train_case.h"

ABSL_FLAG(std::string, case, "gpt8", "gpt8 or mlp8");
ABSL_FLAG(int, micro_batches, 8, "micro-batches per step");
ABSL_FLAG(std::string, schedule, "1f1b", "a name of mesh.schedule");
ABSL_FLAG(double, seconds, 2, "time of one transport and round");
ABSL_FLAG(int, rounds, 3, "alternating rounds; the median counts");
ABSL_FLAG(bool, json, false, "print one JSON object a row");

namespace troupe::bench {
namespace {

struct Way {
  const char* name;
  int processes;
  actors::Transport transport;
};
constexpr Way kWays[] = {{"one process", 1, actors::Transport::kAuto},
                         {"shm", 2, actors::Transport::kShm},
                         {"tcp", 2, actors::Transport::kTcp}};

absl::StatusOr<actors::JobSpec> MakeJob() {
  const std::string name = absl::GetFlag(FLAGS_case);
  const int micro_batch = name == "mlp8" ? 128 : 8;
  return MakeTrainJob(
      name, /*ranks=*/1,
      {absl::StrCat("train.micro_batch_size=", micro_batch),
       absl::StrCat("train.global_batch_size=",
                    micro_batch * absl::GetFlag(FLAGS_micro_batches)),
       "mesh.pp=2",
       absl::StrCat("mesh.schedule=", absl::GetFlag(FLAGS_schedule))});
}

// Returns the milliseconds of a step.
absl::StatusOr<double> Measure(const Way& way) {
  TROUPE_ASSIGN_OR_RETURN(
      const double rate,
      StepsPerSecondInProcesses({MakeJob, way.processes, way.transport},
                                absl::GetFlag(FLAGS_seconds)));
  return 1e3 / rate;
}

absl::Status Main() {
  std::map<std::string, std::vector<double>> times;
  for (int round = 0; round < absl::GetFlag(FLAGS_rounds); ++round) {
    std::vector<Way> ways(std::begin(kWays), std::end(kWays));
    if (round % 2 == 1) std::reverse(ways.begin(), ways.end());
    for (const Way& way : ways) {
      TROUPE_ASSIGN_OR_RETURN(const double time, Measure(way));
      times[way.name].push_back(time);
    }
  }
  Report report("pipeline_transports", absl::GetFlag(FLAGS_json)
                                           ? Report::Form::kJson
                                           : Report::Form::kTable);
  const double within = Median(times[kWays[0].name]);
  for (const Way& way : kWays) {
    Row row;
    row.name = absl::StrCat(absl::GetFlag(FLAGS_case),
                            " m=", absl::GetFlag(FLAGS_micro_batches), " ",
                            absl::GetFlag(FLAGS_schedule), " ", way.name);
    row.ranks = 2;
    row.unit = "ms";
    row.ours = Median(times[way.name]);
    if (way.processes > 1) {
      row.peer = within;
      row.note = absl::StrFormat("%+.1f%% beside one process",
                                 100 * (row.ours / within - 1));
    }
    report.Add(row);
  }
  report.End();
  return absl::OkStatus();
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "times pipelines of two stages by what carries their tensors");
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = troupe::bench::Main();
  if (status.ok()) return 0;
  std::fprintf(stderr, "transports: %s\n", status.ToString().c_str());
  return 1;
}
