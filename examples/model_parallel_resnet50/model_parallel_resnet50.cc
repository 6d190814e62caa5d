// Times ResNet-50 in two parts, as in PyTorch's tutorial "Single-Machine Model
// Parallel Best Practices": first one part after the other, so that one rank is
// always idle; then with a batch split into micro-batches, so that both work at
// once. A single rank with the whole model is the baseline; each rank has one
// thread.
//
//   bazel run //examples/model_parallel_resnet50 -- --svg=$PWD/resnet50.svg
//   ... --image=128 --batch=120 --split_sizes=1,3,5,8,10,12,20,40,60
//                                              the tutorial's sizes: minutes
//   ... --expect_faster                      fails if pipelining is not faster
//
// Writes the tutorial's two bar charts, with the standard deviation over steps,
// as one SVG. Fails if the pipeline's losses differ by a bit from those of one
// rank with the same micro-batches (batch norms see a micro-batch each).

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "actors/job.h"
#include "base/check.h"
#include "data/synthetic/synthetic.h"
#include "examples/model_parallel_resnet50/bar_chart.h"
#include "nn/models/resnet.h"
#include "nn/ops/loss.h"
#include "nn/optim/sgd.h"
#include "pipeline/schedules/schedules.h"

ABSL_FLAG(int, image, 64, "height and width of an image");
ABSL_FLAG(int, batch, 24, "images of a step");
ABSL_FLAG(std::vector<std::string>, split_sizes,
          std::vector<std::string>({"1", "2", "3", "4", "6", "8", "12"}),
          "images of a micro-batch; each divides the batch");
ABSL_FLAG(int, classes, 1000, "classes of the images, drawn at random");
ABSL_FLAG(int, width, 64, "channels of layer1; ResNet-50 has 64");
ABSL_FLAG(std::string, cut, "layer3", "where the second part begins");
ABSL_FLAG(int, steps, 4, "timed steps of a job, after one that is not");
ABSL_FLAG(int, rounds, 2, "jobs of each kind, by turns");
ABSL_FLAG(std::string, svg, "", "the file to write; empty: none");
ABSL_FLAG(bool, expect_faster, false,
          "fail unless the best split is faster than both others");

namespace {

using namespace troupe;  // An example may be short.

// A configuration to time.
struct Way {
  std::string label;
  int pp = 1;
  int micro_batch = 0;          // images
  std::vector<double> seconds;  // one per step, of all rounds
};

class Watch : public actors::JobObserver {
 public:
  void OnSteps(absl::Span<const actors::StepReport> steps) override {
    for (const actors::StepReport& s : steps) {
      losses.push_back(s.loss);
      seconds.push_back(s.step_seconds);
    }
  }
  std::vector<double> losses, seconds;
};

absl::StatusOr<Watch> Train(const Way& way, int steps) {
  actors::JobSpec spec;
  data::SyntheticOptions data;
  data.count = absl::GetFlag(FLAGS_batch) * 2;
  data.input_shape = {absl::GetFlag(FLAGS_image), absl::GetFlag(FLAGS_image),
                      3};
  data.num_classes = absl::GetFlag(FLAGS_classes);
  TROUPE_ASSIGN_OR_RETURN(spec.train,
                          data::MakeSyntheticDataset(data, "train"));
  nn::ResNetOptions resnet;
  resnet.num_classes = absl::GetFlag(FLAGS_classes);
  resnet.width = absl::GetFlag(FLAGS_width);
  spec.model = [resnet] { return nn::MakeResNet(50, resnet).value(); };
  spec.loss = nn::ops::CrossEntropyLoss();
  spec.optimizer = nn::SgdOptions{/*lr=*/0.001};
  spec.plan.mesh = pipeline::Mesh(/*dp=*/1, way.pp);
  if (way.pp > 1) spec.plan.cuts = {absl::GetFlag(FLAGS_cut)};
  spec.plan.global_batch_size = absl::GetFlag(FLAGS_batch);
  spec.plan.micro_batch_size = way.micro_batch;
  TROUPE_RETURN_IF_ERROR(pipeline::SetSchedule("1f1b", spec.plan));
  spec.steps = steps;
  Watch watch;
  TROUPE_RETURN_IF_ERROR(actors::RunJob(spec, &watch).status());
  return watch;
}

// Returns the whole batch on one rank and in two parts, then each split size in
// two parts.
absl::StatusOr<std::vector<Way>> MakeWays() {
  const int batch = absl::GetFlag(FLAGS_batch);
  std::vector<Way> ways = {{"one rank", /*pp=*/1, batch, {}},
                           {"two parts", /*pp=*/2, batch, {}}};
  for (const std::string& text : absl::GetFlag(FLAGS_split_sizes)) {
    int size = 0;
    if (!absl::SimpleAtoi(text, &size) || size < 1 || batch % size != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--split_sizes: ", text, " does not divide --batch=", batch));
    }
    ways.push_back({text, /*pp=*/2, size, {}});
  }
  return ways;
}

absl::Status Measure(std::vector<Way>& ways) {
  const int steps = absl::GetFlag(FLAGS_steps);
  for (int round = 0; round < absl::GetFlag(FLAGS_rounds); ++round) {
    for (Way& way : ways) {
      TROUPE_ASSIGN_OR_RETURN(const Watch watch, Train(way, steps + 1));
      way.seconds.insert(way.seconds.end(), watch.seconds.begin() + 1,
                         watch.seconds.end());
    }
  }
  return absl::OkStatus();
}

absl::Status CompareLosses(const std::vector<Way>& ways) {
  for (std::size_t i = 1; i < ways.size(); ++i) {
    Way alone = ways[i];
    alone.pp = 1;
    TROUPE_ASSIGN_OR_RETURN(const Watch two, Train(ways[i], /*steps=*/2));
    TROUPE_ASSIGN_OR_RETURN(const Watch one, Train(alone, /*steps=*/2));
    if (one.losses == two.losses && one.losses.size() == 2) continue;
    return absl::InternalError(
        absl::StrCat("other losses than on one rank, with micro-batches of ",
                     ways[i].micro_batch));
  }
  return absl::OkStatus();
}

absl::Status Run() {
  TROUPE_ASSIGN_OR_RETURN(std::vector<Way> ways, MakeWays());
  if (ways.size() < 3) {
    return absl::InvalidArgumentError("--split_sizes: there must be one");
  }
  TROUPE_RETURN_IF_ERROR(Measure(ways));
  std::vector<examples::Bar> bars;
  for (const Way& way : ways) {
    bars.push_back(examples::MakeBar(way.label, way.seconds));
    std::printf("%-10s %.4f s a step, deviation %.4f\n", way.label.c_str(),
                bars.back().mean, bars.back().deviation);
  }
  const auto best = std::min_element(
      bars.begin() + 2, bars.end(),
      [](const auto& a, const auto& b) { return a.mean < b.mean; });
  examples::BarChart kinds{"ResNet-50: one rank, two parts, pipelined",
                           "seconds a step",
                           {bars[1], bars[0], *best}};
  kinds.bars[2].label = "pipelined, splits of " + best->label;
  examples::BarChart splits{"Pipelined: images of a micro-batch",
                            "seconds a step",
                            {bars.begin() + 2, bars.end()}};
  const std::string svg = absl::GetFlag(FLAGS_svg);
  if (!svg.empty()) {
    TROUPE_RETURN_IF_ERROR(examples::WriteSvg({kinds, splits}, svg));
  }
  TROUPE_RETURN_IF_ERROR(CompareLosses(ways));
  const double other = std::min(bars[0].mean, bars[1].mean);
  std::printf("pipelined takes %.0f %% of the time of one rank\n",
              100 * best->mean / bars[0].mean);
  if (absl::GetFlag(FLAGS_expect_faster) && !(best->mean < other)) {
    return absl::InternalError("pipelining is not faster");
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("times ResNet-50 in two parts");
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = Run();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
