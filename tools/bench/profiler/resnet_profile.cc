// Profiles training steps of a ResNet in a loop of one's own on one core, and
// prints the Profiler's table (troupe/profiler.h). profiler_tables.py prints
// torch.profiler's beside it.
//
//   bazel run //tools/bench/profiler:resnet_profile
//   ... -- --depth=18 --image=64 --batch=8 --steps=4
//   ... -- --cost            what a Profiler costs outside of its window: times
//                            of steps without and with one, alternately
//   ... -- --rows            all operators, for profiler_tables.py: a line with
//                            the milliseconds of all steps, then lines of name,
//                            calls, self and total milliseconds

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_format.h"
#include "nn/models/resnet.h"
#include "tools/bench/report.h"
#include "troupe/troupe.h"

ABSL_FLAG(int, depth, 50, "layers of the network: 18, 34, 50 or 101");
ABSL_FLAG(int, image, 224, "height and width of an image");
ABSL_FLAG(int, batch, 4, "images of a batch");
ABSL_FLAG(int, steps, 2, "profiled steps, after two that warm up");
ABSL_FLAG(bool, cost, false,
          "print what a Profiler costs outside of its window");
ABSL_FLAG(bool, rows, false, "print numbers for profiler_tables.py");

namespace troupe::bench {
namespace {

constexpr int kWarmup = 2, kClasses = 1000;

void PrintRows(const OpProfile& profile) {
  absl::PrintF("%.3f\n", profile.micros / 1000);
  for (const OperatorTime& op : profile.KeyAverages()) {
    absl::PrintF("%s\t%d\t%.3f\t%.3f\n", op.name, op.calls, op.self_ms,
                 op.total_ms);
  }
}

// Prints the medians of `--steps` steps without a Profiler and of as many with
// one that waits.
void PrintCost(Rank& rank, const std::function<void()>& step) {
  ProfilerOptions options;
  options.wait = std::numeric_limits<int>::max() / 2;
  options.active = 1;
  const int turns = std::max(1, absl::GetFlag(FLAGS_steps));
  std::vector<double> times[2];
  for (int turn = -kWarmup; turn < 2 * turns; ++turn) {
    const bool waits = turn % 2 != 0;
    std::optional<Profiler> profiler;
    if (waits) profiler.emplace(rank, options);
    const auto begin = std::chrono::steady_clock::now();
    step();
    if (waits) profiler->Step();
    const std::chrono::duration<double, std::milli> took =
        std::chrono::steady_clock::now() - begin;
    if (turn >= 0) times[waits].push_back(took.count());
  }
  const double without = Median(times[0]), waiting = Median(times[1]);
  absl::PrintF(
      "a step without a Profiler: %.3f ms; outside of its window: %.3f ms, "
      "%.4f times\n",
      without, waiting, waiting / without);
}

void Run(Rank& rank) {
  auto model =
      rank.Place(nn::MakeResNet(absl::GetFlag(FLAGS_depth), {}).value());
  Sgd sgd(model, {/*lr=*/0.01, /*momentum=*/0.9});
  const int batch = absl::GetFlag(FLAGS_batch);
  const int image = absl::GetFlag(FLAGS_image);
  const Var images = rank.Randn({batch, image, image, 3});
  const Var labels = rank.Randint(0, kClasses, {batch});
  const auto train = [&] {
    sgd.ZeroGrad();
    nn::CrossEntropy(model(images), labels).Backward();
    sgd.Step();
  };
  if (absl::GetFlag(FLAGS_cost)) return PrintCost(rank, train);
  ProfilerOptions options;
  options.warmup = kWarmup;
  options.active = std::max(1, absl::GetFlag(FLAGS_steps));
  options.repeat = 1;
  Profiler profiler(rank, options);
  for (int step = 0; step < options.warmup + options.active; ++step) {
    train();
    profiler.Step();
  }
  if (absl::GetFlag(FLAGS_rows)) {
    PrintRows(profiler.profile());
  } else {
    absl::PrintF("%s", profiler.Table());
  }
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "Profiles training steps of a ResNet on one core.");
  absl::ParseCommandLine(argc, argv);
  troupe::SpawnOptions options;
  options.ranks = 1;
  return troupe::ExitCode(troupe::Spawn(troupe::bench::Run, options));
}
