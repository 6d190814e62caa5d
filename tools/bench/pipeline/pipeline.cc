// Times training steps of pipelines of two stages, each a rank with a core of
// its own, and, in rounds between, PyTorch's: torch.distributed.pipelining over
// Gloo, in two processes.
//
//   bazel run //tools/bench/pipeline -- --python=$HOME/peer/bin/python
//   ... --case=mlp8 --micro_batches=8        one case, one number
//   ... --seconds=2 --rounds=5               longer, and more often
//   ... --json                               one JSON object a row
//
// Cases: gpt8, a GPT of 8 blocks 256 wide, 8 times 128 tokens a micro-batch;
// mlp8, 8 layers of 1024, 128 samples a micro-batch. Rows: milliseconds of a
// step, by schedule, beside the same of PyTorch, or its 1F1B where it has no
// such schedule; and of one rank alone, without a peer. Behind a row: the part
// of the step in which a rank is idle, if two ranks are as fast as twice one.

#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "actors/job_spec.h"
#include "base/check.h"
#include "tools/bench/peer.h"
#include "tools/bench/report.h"
#include "tools/bench/train_case.h"
#include "tools/profile/timed_run.h"

ABSL_FLAG(std::vector<std::string>, case, {}, "gpt8, mlp8; default: both");
ABSL_FLAG(std::vector<std::string>, schedule, {},
          "names of mesh.schedule; default: gpipe, 1f1b, zb_h1, zb_v");
ABSL_FLAG(int, micro_batches, 0, "of a step; default: 8 and 16");
ABSL_FLAG(double, seconds, 2, "of one row, one contestant and one round");
ABSL_FLAG(int, rounds, 3, "alternating rounds; the median counts");
ABSL_FLAG(bool, json, false, "print one JSON object a row");
ABSL_FLAG(std::string, python, "",
          "a Python with PyTorch, to measure the peer");

namespace troupe::bench {
namespace {

struct PipelineCase {
  const char* name;
  int micro_batch;
};
constexpr PipelineCase kCases[] = {{"gpt8", 8}, {"mlp8", 128}};

// What PyTorch calls a schedule; its 1F1B where it has no such one of a chunk a
// rank.
std::string PeerSchedule(const std::string& name) {
  return name == "gpipe" || name == "zb_v" ? name : "1f1b";
}

class Benchmark {
 public:
  Benchmark(const std::string& program, const std::string& python)
      : report_("pipeline", absl::GetFlag(FLAGS_json) ? Report::Form::kJson
                                                      : Report::Form::kTable) {
    if (python.empty()) return;
    auto peer = Peer::Start(
        python, FindScript(program, "tools/bench/pipeline/torch_pipeline.py"),
        {});
    if (peer.ok()) {
      peer_ = *std::move(peer);
    } else {
      std::fprintf(stderr, "%s\n", peer.status().ToString().c_str());
    }
  }

  absl::Status Run(const PipelineCase& c, int micro_batches,
                   const std::vector<std::string>& schedules) {
    TROUPE_ASSIGN_OR_RETURN(const double alone,
                            Median({c, micro_batches, ""}, nullptr));
    for (const std::string& schedule : schedules) {
      std::vector<double> theirs;
      TROUPE_ASSIGN_OR_RETURN(const double ours,
                              Median({c, micro_batches, schedule}, &theirs));
      Row row;
      row.name = absl::StrCat(c.name, " m=", micro_batches, " ", schedule);
      row.ranks = 2;
      row.unit = "ms";
      row.ours = ours;
      if (!theirs.empty()) row.peer = bench::Median(theirs);
      // Of two ranks, which together are as fast as twice one.
      row.note =
          absl::StrFormat("%.0f%% of the time of one rank, %.1f%% idle",
                          100 * ours / alone, 100 * (1 - alone / (2 * ours)));
      report_.Add(row);
    }
    Row row;
    row.name = absl::StrCat(c.name, " m=", micro_batches, " one rank");
    row.unit = "ms";
    row.ours = alone;
    report_.Add(row);
    return absl::OkStatus();
  }

  void End() { report_.End(); }

 private:
  struct Turn {
    const PipelineCase& c;
    int micro_batches;
    std::string schedule;  // empty: one rank
  };

  static absl::StatusOr<double> Ours(const Turn& turn) {
    std::vector<std::string> settings = {
        absl::StrCat("train.micro_batch_size=", turn.c.micro_batch),
        absl::StrCat("train.global_batch_size=",
                     turn.c.micro_batch * turn.micro_batches)};
    if (!turn.schedule.empty()) {
      settings.push_back("mesh.pp=2");
      settings.push_back(absl::StrCat("mesh.schedule=", turn.schedule));
    }
    TROUPE_ASSIGN_OR_RETURN(const actors::JobSpec spec,
                            MakeTrainJob(turn.c.name, /*ranks=*/1, settings));
    TROUPE_ASSIGN_OR_RETURN(
        const double rate,
        tools::StepsPerSecond(spec, absl::GetFlag(FLAGS_seconds)));
    return 1e3 / rate;
  }

  absl::StatusOr<double> Theirs(const Turn& turn) {
    return peer_->Measure(
        absl::StrCat(turn.c.name, " ", PeerSchedule(turn.schedule), " ",
                     turn.micro_batches, " ", absl::GetFlag(FLAGS_seconds)));
  }

  // Ours; the peer's go into `theirs`, where there is a peer and it has them.
  absl::StatusOr<double> Median(const Turn& turn, std::vector<double>* theirs) {
    std::vector<double> ours;
    for (int round = 0; round < absl::GetFlag(FLAGS_rounds); ++round) {
      for (const bool own : {round % 2 == 0, round % 2 != 0}) {
        if (own) {
          TROUPE_ASSIGN_OR_RETURN(const double time, Ours(turn));
          ours.push_back(time);
        } else if (theirs != nullptr && peer_ != nullptr) {
          TROUPE_ASSIGN_OR_RETURN(const double time, Theirs(turn));
          if (!std::isnan(time)) theirs->push_back(time);
        }
      }
    }
    return bench::Median(ours);
  }

  Report report_;
  std::unique_ptr<Peer> peer_;
};

bool IsAsked(const std::vector<std::string>& names, const std::string& name) {
  if (names.empty()) return true;
  for (const std::string& asked : names) {
    if (asked == name) return true;
  }
  return false;
}

absl::Status Main(const std::string& program) {
  std::vector<std::string> schedules = absl::GetFlag(FLAGS_schedule);
  if (schedules.empty()) schedules = {"gpipe", "1f1b", "zb_h1", "zb_v"};
  std::vector<int> counts = {8, 16};
  if (absl::GetFlag(FLAGS_micro_batches) > 0) {
    counts = {absl::GetFlag(FLAGS_micro_batches)};
  }
  Benchmark benchmark(program, absl::GetFlag(FLAGS_python));
  for (const PipelineCase& c : kCases) {
    if (!IsAsked(absl::GetFlag(FLAGS_case), c.name)) continue;
    for (const int count : counts) {
      TROUPE_RETURN_IF_ERROR(benchmark.Run(c, count, schedules));
    }
  }
  benchmark.End();
  return absl::OkStatus();
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "times training steps of pipelines, and of PyTorch's");
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = troupe::bench::Main(argv[0]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "pipeline: %s\n", status.ToString().c_str());
  return 1;
}
