// Times training steps of pipelines of two stages, each on its own rank and
// core, and, in alternating rounds, PyTorch's: torch.distributed.pipelining
// over Gloo, in two processes.
//
//   bazel run //tools/bench/pipeline -- --python=$HOME/peer/bin/python
//   ... --case=mlp8 --micro_batches=8        one case, one number
//   ... --seconds=2 --rounds=5               longer, and more often
//   ... --json                               one JSON object per row
//
// Cases: gpt8, a GPT of 8 blocks 256 wide, 8 times 128 tokens per micro-batch;
// mlp8, 8 layers of 1024, 128 samples per micro-batch; resnet50, 8 images of
// 64x64 per micro-batch and 8 micro-batches, which PyTorch does not run here.
// Layers are measured before every row and round to choose the cuts
// (mesh.balance).
//
// Rows: milliseconds of a step by schedule, beside PyTorch's with the same
// schedule, or its 1F1B if it lacks that one; and of one rank, without a peer.
// "split" has one micro-batch, the whole batch, so that one stage works at a
// time. The note of a row has the fraction of the step in which a rank is idle,
// if two ranks are as fast as twice one, then the prediction of trainer plan
// and its relative error. "jitter" rows are simulated, with noise of a fifth on
// the time of every action: ours in the order of arrival, the peer in the order
// of the table.

#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "actors/planning/measure_costs.h"
#include "actors/planning/step_prediction.h"
#include "actors/spec/job_spec.h"
#include "actors/step_seconds.h"
#include "base/check.h"
#include "tools/bench/peer.h"
#include "tools/bench/pipeline/jitter.h"
#include "tools/bench/report.h"
#include "tools/bench/train_case.h"

ABSL_FLAG(std::vector<std::string>, case, {},
          "gpt8, mlp8, resnet50; default: all");
ABSL_FLAG(std::vector<std::string>, schedule, {},
          "names of mesh.schedule; default: gpipe, 1f1b, zb_h1, zb_v, search; "
          "for resnet50: split, gpipe, 1f1b");
ABSL_FLAG(int, micro_batches, 0, "micro-batches per step; default: 8 and 16");
ABSL_FLAG(double, jitter, 0.2, "noise as a fraction of an action's time");
ABSL_FLAG(double, seconds, 2, "time of one row, contestant and round");
ABSL_FLAG(int, rounds, 3, "alternating rounds; the median counts");
ABSL_FLAG(bool, json, false, "print one JSON object a row");
ABSL_FLAG(std::string, python, "",
          "a Python with PyTorch, to measure the peer");

namespace troupe::bench {
namespace {

struct PipelineCase {
  const char* name;
  int micro_batch;
  std::vector<std::string> schedules;
  std::vector<int> micro_batches;  // numbers of micro-batches per step
  bool has_peer;
};

// Name of the schedule with one micro-batch, in which no stages overlap.
constexpr char kSplit[] = "split";

std::vector<PipelineCase> Cases() {
  const std::vector<std::string> all = {"gpipe", "1f1b", "zb_h1", "zb_v",
                                        "search"};
  return {{"gpt8", 8, all, {8, 16}, true},
          {"mlp8", 128, all, {8, 16}, true},
          {"resnet50", 8, {kSplit, "gpipe", "1f1b"}, {8}, false}};
}

// Returns PyTorch's name of a schedule, or "1f1b" if PyTorch lacks it.
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
    TROUPE_ASSIGN_OR_RETURN(const Times alone, Measure({c, micro_batches, ""}));
    for (const std::string& schedule : schedules) {
      const Turn turn = {c, micro_batches, schedule};
      TROUPE_ASSIGN_OR_RETURN(const Times times, Measure(turn));
      AddRow(turn, times, bench::Median(alone.ours));
      if (schedule != kSplit) TROUPE_RETURN_IF_ERROR(AddJitter(turn, times));
    }
    AddRow({c, micro_batches, ""}, alone, bench::Median(alone.ours));
    return absl::OkStatus();
  }

  void End() { report_.End(); }

 private:
  struct Turn {
    const PipelineCase& c;
    int micro_batches;
    std::string schedule;  // empty for one rank

    std::string name() const {
      return absl::StrCat(c.name, " m=", micro_batches, " ",
                          schedule.empty() ? "one rank" : schedule);
    }
  };
  // Times in milliseconds, by round.
  struct Times {
    std::vector<double> ours, theirs;
    std::vector<double> predicted, errors;  // errors as fractions of measured
    std::optional<actors::StepPrediction> last;
  };

  static absl::StatusOr<actors::JobSpec> SpecOf(const Turn& turn) {
    const int batch = turn.c.micro_batch * turn.micro_batches;
    const bool split = turn.schedule == kSplit;
    std::vector<std::string> settings = {
        absl::StrCat("train.micro_batch_size=",
                     split ? batch : turn.c.micro_batch),
        absl::StrCat("train.global_batch_size=", batch)};
    if (!turn.schedule.empty()) {
      settings.push_back("mesh.pp=2");
      settings.push_back("mesh.balance=measured");
      settings.push_back(
          absl::StrCat("mesh.schedule=", split ? "gpipe" : turn.schedule));
    }
    return MakeTrainJob(turn.c.name, /*ranks=*/1, settings);
  }

  // Predicts the time of a step, and then measures it.
  static absl::Status Ours(const Turn& turn, Times& times) {
    TROUPE_ASSIGN_OR_RETURN(actors::JobSpec spec, SpecOf(turn));
    TROUPE_ASSIGN_OR_RETURN(const pipeline::ModelCosts costs,
                            actors::MeasureCosts(spec));
    if (spec.open_pipeline.has_value()) {
      TROUPE_RETURN_IF_ERROR(spec.open_pipeline->set(costs, spec.plan));
      spec.open_pipeline.reset();
    }
    TROUPE_ASSIGN_OR_RETURN(times.last, actors::PredictStep(spec, &costs));
    TROUPE_ASSIGN_OR_RETURN(
        const double rate,
        actors::StepsPerSecond(spec, absl::GetFlag(FLAGS_seconds)));
    times.ours.push_back(1e3 / rate);
    times.predicted.push_back(1e3 * times.last->seconds);
    times.errors.push_back(times.last->seconds * rate - 1);
    return absl::OkStatus();
  }

  absl::StatusOr<double> Theirs(const Turn& turn) {
    return peer_->Measure(
        absl::StrCat(turn.c.name, " ", PeerSchedule(turn.schedule), " ",
                     turn.micro_batches, " ", absl::GetFlag(FLAGS_seconds)));
  }

  absl::StatusOr<Times> Measure(const Turn& turn) {
    Times times;
    const bool has_peer =
        peer_ != nullptr && turn.c.has_peer && !turn.schedule.empty();
    for (int round = 0; round < absl::GetFlag(FLAGS_rounds); ++round) {
      for (const bool own : {round % 2 == 0, round % 2 != 0}) {
        if (own) {
          TROUPE_RETURN_IF_ERROR(Ours(turn, times));
        } else if (has_peer) {
          TROUPE_ASSIGN_OR_RETURN(const double time, Theirs(turn));
          if (!std::isnan(time)) times.theirs.push_back(time);
        }
      }
    }
    return times;
  }

  void AddRow(const Turn& turn, const Times& times, double alone) {
    Row row;
    row.name = turn.name();
    row.ranks = turn.schedule.empty() ? 1 : 2;
    row.unit = "ms";
    row.ours = bench::Median(times.ours);
    if (!times.theirs.empty()) row.peer = bench::Median(times.theirs);
    // The idle time assumes that two ranks are as fast as twice one.
    if (row.ranks == 2) {
      row.note = absl::StrFormat(
          "%.0f%% of the time of one rank, %.1f%% idle; ",
          100 * row.ours / alone, 100 * (1 - alone / (2 * row.ours)));
    }
    absl::StrAppendFormat(&row.note, "predicted %.4g ms, %+.1f%%",
                          bench::Median(times.predicted),
                          100 * bench::Median(times.errors));
    if (row.ranks == 2) {
      absl::StrAppendFormat(
          &row.note, ", bubble %.1f%%, activations of at most %d micro-batches",
          100 * times.last->steady.bubble,
          times.last->steady.step.activations_max());
    }
    report_.Add(row);
    row.name += ", predicted";
    row.peer.reset();
    row.ours = bench::Median(times.predicted);
    row.note.clear();
    if (absl::GetFlag(FLAGS_json)) report_.Add(row);
  }

  absl::Status AddJitter(const Turn& turn, const Times& times) {
    const double jitter = absl::GetFlag(FLAGS_jitter);
    TROUPE_ASSIGN_OR_RETURN(
        const JitteredSteps steps,
        SimulateJitter(times.last->plan, times.last->costs, jitter));
    Row row;
    row.name = absl::StrCat(turn.name(), " jitter");
    row.ranks = 2;
    row.unit = "ms";
    row.ours = 1e3 * steps.arrival;
    row.peer = 1e3 * steps.strict;
    row.note = absl::StrFormat(
        "simulated with %.0f%% noise: by arrival, beside strict order",
        100 * jitter);
    report_.Add(row);
    return absl::OkStatus();
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
  const std::vector<std::string> asked = absl::GetFlag(FLAGS_schedule);
  const int count_asked = absl::GetFlag(FLAGS_micro_batches);
  Benchmark benchmark(program, absl::GetFlag(FLAGS_python));
  for (const PipelineCase& c : Cases()) {
    if (!IsAsked(absl::GetFlag(FLAGS_case), c.name)) continue;
    const std::vector<int> counts =
        count_asked > 0 ? std::vector<int>{count_asked} : c.micro_batches;
    for (const int count : counts) {
      TROUPE_RETURN_IF_ERROR(
          benchmark.Run(c, count, asked.empty() ? c.schedules : asked));
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
