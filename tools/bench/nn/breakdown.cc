#include "tools/bench/nn/breakdown.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "actors/step_seconds.h"
#include "base/check.h"
#include "tools/profile/op_clock.h"

namespace troupe::bench {
namespace {

constexpr char kUnit[] = "of step";
// Ops that take less of a step are in the sums alone.
constexpr double kRowShareMin = 0.01;

// What the clock saw, as parts of the time that it ran.
struct Shares {
  double products = 0;
  double others = 0;
};

Shares SharesOf(const tools::OpClock& clock) {
  Shares shares;
  for (const tools::OpClock::Time& op : clock.times()) {
    double& sum = IsProduct(op.name) ? shares.products : shares.others;
    sum += op.seconds / clock.seconds();
  }
  return shares;
}

void AddRow(const std::string& name, double share, FigureTable& table,
            const std::string& note = "") {
  Figure& figure = table.At(name, /*ranks=*/1, kUnit, Better::kLower);
  figure.ours = {share};
  figure.note = note;
}

}  // namespace

bool IsProduct(const std::string& op) {
  for (const char* family : {"Linear", "Conv2d", "Attention", "MatMul"}) {
    if (absl::StartsWith(op, family)) return true;
  }
  return false;
}

absl::Status AddBreakdown(const std::string& label, actors::JobSpec spec,
                          double flops, const Peak& peak, double seconds,
                          FigureTable& table) {
  tools::OpClock clock;
  clock.Attach(spec);
  actors::TimedPart part;
  part.begin = [&clock] { clock.Start(); };
  part.end = [&clock] { clock.Stop(); };
  TROUPE_ASSIGN_OR_RETURN(const double rate,
                          actors::StepsPerSecond(spec, seconds, part));
  const Shares shares = SharesOf(clock);
  const double at_peak = flops * rate / (peak.gflops * 1e9);
  const double steps = rate * clock.seconds();
  AddRow(absl::StrCat(label, " at the peak"), at_peak, table,
         absl::StrFormat("of a step of %.4g ms, ops timed one by one",
                         1e3 / rate));
  AddRow(absl::StrCat(label, " slower products"), shares.products - at_peak,
         table);
  AddRow(absl::StrCat(label, " other ops"), shares.others, table);
  AddRow(absl::StrCat(label, " outside ops"),
         1 - shares.products - shares.others, table);
  for (const tools::OpClock::Time& op : clock.times()) {
    const double share = op.seconds / clock.seconds();
    if (share < kRowShareMin) break;
    AddRow(absl::StrCat(label, " ", op.name), share, table,
           absl::StrFormat("%.4g ms, in %.0f calls", 1e3 * op.seconds / steps,
                           static_cast<double>(op.calls) / steps));
  }
  return absl::OkStatus();
}

}  // namespace troupe::bench
