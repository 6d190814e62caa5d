// Times training steps of GPTs whose layers two ranks share (tensor parallel),
// and, in alternating rounds, PyTorch's by DTensor over Gloo; one rank beside
// both.
//
//   bazel run //tools/bench/tensor_step -- --python=$HOME/peer/bin/python
//   ... --case=gpt_w1024 --seconds=4 --rounds=9
//   ... --json                                one JSON object a row
//
// Rows: steps per second of a case on one rank, on two that share its layers
// ("tp"), and on two that share the tokens between them, too ("tokens"), and on
// one that computes as several do (mesh.depth_blocks: "2 blocks"); and the time
// of such a step over that of one rank in the same round. Batches are
// equal on one rank and on two. Our ranks are threads of this process, the
// peer's are processes. Half the time of one rank is what two could reach
// without sums, copies and whatever both compute.

#include <cstdio>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_cat.h"
#include "actors/step_seconds.h"
#include "base/check.h"
#include "tools/bench/figure_table.h"
#include "tools/bench/report.h"
#include "tools/bench/torch_train.h"
#include "tools/bench/train_case.h"

ABSL_FLAG(std::vector<std::string>, case, {},
          "gpt_w512, gpt_w1024; default: both");
ABSL_FLAG(double, seconds, 2, "time of one contestant in a round");
ABSL_FLAG(int, rounds, 5, "alternating rounds; the median counts");
ABSL_FLAG(bool, json, false, "print one JSON object a row");
ABSL_FLAG(std::string, python, "",
          "a Python with PyTorch, to measure the peer");

namespace troupe::bench {
namespace {

constexpr const char* kCases[] = {"gpt_w512", "gpt_w1024"};
constexpr char kRate[] = "steps/s";

// A way to lay out the model.
struct Way {
  const char* word;  // part of the row's name; empty: one rank
  int ranks;
  std::vector<std::string> settings;
  const char* torch_mode;  // null: PyTorch has no such row
};

const std::vector<Way>& Ways() {
  static const auto* const ways = new std::vector<Way>{
      {"", 1, {}, "eager"},
      {" tp", 2, {"mesh.tp=2"}, "tensor"},
      {" tokens", 2, {"mesh.tp=2", "mesh.sequence_parallel=true"}, nullptr},
      {" 2 blocks", 1, {"mesh.depth_blocks=2"}, nullptr},
      {" 4 blocks", 1, {"mesh.depth_blocks=4"}, nullptr},
  };
  return *ways;
}

class Bench {
 public:
  explicit Bench(const char* program)
      : torch_(program, absl::GetFlag(FLAGS_python)),
        table_("tensor_step", absl::GetFlag(FLAGS_json)
                                  ? Report::Form::kJson
                                  : Report::Form::kTable) {}

  absl::Status Run() {
    const std::vector<std::string> wanted = absl::GetFlag(FLAGS_case);
    for (int round = 0; round < absl::GetFlag(FLAGS_rounds); ++round) {
      for (const char* name : kCases) {
        if (!wanted.empty() && !absl::c_linear_search(wanted, name)) continue;
        for (const Way& way : Ways()) {
          TROUPE_RETURN_IF_ERROR(Measure(name, way));
        }
      }
    }
    table_.Print();
    table_.End();
    return absl::OkStatus();
  }

 private:
  absl::Status Measure(const std::string& name, const Way& way) {
    const double seconds = absl::GetFlag(FLAGS_seconds);
    const std::string row = absl::StrCat(name, way.word);
    Figure& rates = table_.At(row, way.ranks, kRate, Better::kHigher);
    TROUPE_ASSIGN_OR_RETURN(const actors::JobSpec spec,
                            MakeTrainJob(name, /*ranks=*/1, way.settings));
    TROUPE_ASSIGN_OR_RETURN(const double ours,
                            actors::StepsPerSecond(spec, seconds));
    rates.ours.push_back(ours);
    const bool has_peer = torch_.is_there() && way.torch_mode != nullptr;
    if (has_peer) {
      TorchStep step;
      step.name = name;
      step.mode = way.torch_mode;
      step.ranks = way.ranks;
      TROUPE_ASSIGN_OR_RETURN(const double theirs,
                              torch_.StepsPerSecond(step, seconds));
      rates.peer.push_back(theirs);
    }
    if (row == name) return absl::OkStatus();
    const Figure& one = *table_.Find(name, 1, kRate);
    Figure& quotient = table_.At(row, way.ranks, "x 1 rank", Better::kLower);
    quotient.ours.push_back(one.ours.back() / ours);
    if (has_peer) {
      quotient.peer.push_back(one.peer.back() / rates.peer.back());
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
      "Times training steps of ranks that share layers beside PyTorch's.");
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = troupe::bench::Bench(argv[0]).Run();
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
