#include "tools/bench/nn/breakdown.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "actors/step_seconds.h"
#include "base/check.h"
#include "tools/profile/op_clock.h"

namespace troupe::bench {
namespace {

constexpr char kUnit[] = "of step";
// Ops that take less of a step than this have no row, but count in the sums.
constexpr double kRowShareMin = 0.01;

// Times of a rank's step in seconds: the whole, and that of ops.
struct TimedStep {
  double seconds = 0;
  double products = 0;
  double others = 0;
  std::vector<tools::OpClock::Time> ops;  // their calls are those of a step

  double outside() const { return seconds - products - others; }
};

absl::StatusOr<TimedStep> TimeStep(actors::JobSpec spec, int ranks,
                                   double seconds) {
  tools::OpClock clock;
  clock.Attach(spec);
  actors::TimedPart part;
  part.begin = [&clock] { clock.Start(); };
  part.end = [&clock] { clock.Stop(); };
  TROUPE_ASSIGN_OR_RETURN(const double rate,
                          actors::StepsPerSecond(spec, seconds, part));
  TimedStep step;
  step.seconds = 1 / rate;
  step.ops = clock.times();
  const double rank_steps = clock.seconds() * rate * ranks;
  for (tools::OpClock::Time& op : step.ops) {
    op.seconds /= rank_steps;
    op.calls = std::llround(static_cast<double>(op.calls) / rank_steps);
    (IsProduct(op.name) ? step.products : step.others) += op.seconds;
  }
  return step;
}

void AddRow(const std::string& name, int ranks, double share,
            FigureTable& table, const std::string& note = "") {
  Figure& figure = table.At(name, ranks, kUnit, Better::kLower);
  figure.ours = {share};
  figure.note = note;
}

// Adds the rows of the time that a step of several ranks takes beyond that of
// one rank, as fractions of the latter.
void AddLonger(const std::string& label, int ranks, const TimedStep& one,
               const TimedStep& step, FigureTable& table) {
  const auto add = [&](const char* name, double more,
                       const std::string& note = "") {
    AddRow(absl::StrCat(label, " ", name), ranks, more / one.seconds, table,
           note);
  };
  add("longer", step.seconds - one.seconds,
      absl::StrFormat("a step of %.4g ms beside one rank's %.4g",
                      1e3 * step.seconds, 1e3 * one.seconds));
  add("longer products", step.products - one.products);
  add("longer other ops", step.others - one.others);
  add("longer outside ops", step.outside() - one.outside());
}

}  // namespace

bool IsProduct(const std::string& op) {
  for (const char* family : {"Linear", "Conv2d", "Attention", "MatMul"}) {
    if (absl::StartsWith(op, family)) return true;
  }
  return false;
}

absl::Status AddBreakdown(const std::string& label, const JobOfRanks& job,
                          absl::Span<const int> ranks, double flops,
                          const Peak& peak, double seconds,
                          FigureTable& table) {
  TROUPE_ASSIGN_OR_RETURN(actors::JobSpec spec, job(1));
  TROUPE_ASSIGN_OR_RETURN(const TimedStep one,
                          TimeStep(std::move(spec), 1, seconds));
  const auto add = [&](const char* name, double share,
                       const std::string& note = "") {
    AddRow(absl::StrCat(label, " ", name), /*ranks=*/1, share, table, note);
  };
  const double at_peak = flops / (peak.gflops * 1e9) / one.seconds;
  add("at the peak", at_peak,
      absl::StrFormat("of a step of %.4g ms, ops timed one by one",
                      1e3 * one.seconds));
  add("slower products", one.products / one.seconds - at_peak);
  add("other ops", one.others / one.seconds);
  add("outside ops", one.outside() / one.seconds);
  for (const tools::OpClock::Time& op : one.ops) {
    const double share = op.seconds / one.seconds;
    if (share < kRowShareMin) break;
    add(op.name.c_str(), share,
        absl::StrFormat("%.4g ms, in %d calls", 1e3 * op.seconds, op.calls));
  }
  for (const int count : ranks) {
    if (count == 1) continue;
    TROUPE_ASSIGN_OR_RETURN(spec, job(count));
    TROUPE_ASSIGN_OR_RETURN(const TimedStep step,
                            TimeStep(std::move(spec), count, seconds));
    AddLonger(label, count, one, step, table);
  }
  return absl::OkStatus();
}

}  // namespace troupe::bench
