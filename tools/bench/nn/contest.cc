#include "tools/bench/nn/contest.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "actors/step_seconds.h"
#include "base/check.h"
#include "tools/bench/train_case.h"

namespace troupe::bench {
namespace {

constexpr char kRate[] = "steps/s";
constexpr char kScaling[] = "x 1 rank";

// Returns the mode with the highest median; empty if there is none.
std::string BestOf(const std::map<std::string, std::vector<double>>& rates) {
  std::string best;
  double best_rate = 0;
  for (const auto& [mode, values] : rates) {
    if (values.empty() || Median(values) <= best_rate) continue;
    best = mode;
    best_rate = Median(values);
  }
  return best;
}

}  // namespace

absl::StatusOr<actors::JobSpec> CaseAndPrecision::Job(
    int ranks, std::vector<std::string> settings) const {
  settings.push_back(absl::StrCat("train.precision=", precision));
  return MakeTrainJob(name, ranks, settings);
}

absl::Status Contest::Run() {
  TROUPE_RETURN_IF_ERROR(Prepare());
  for (int round = 0; round < options_.rounds; ++round) {
    const Peak peak = MeasurePeak(what_.is_bf16());
    peaks_.push_back(peak.gflops);
    native_peak_ = peak.native;
    const bool ours_first = round % 2 == 0;
    for (const int ranks : options_.ranks) {
      if (ours_first) TROUPE_RETURN_IF_ERROR(MeasureOurs(ranks));
      TROUPE_RETURN_IF_ERROR(MeasureTorch(ranks));
      if (!ours_first) TROUPE_RETURN_IF_ERROR(MeasureOurs(ranks));
    }
  }
  if (options_.rounds == 0) return absl::OkStatus();
  for (const int ranks : options_.ranks) AddRates(ranks);
  for (const int ranks : options_.ranks) AddScaling(ranks);
  return absl::OkStatus();
}

absl::Status Contest::Prepare() {
  for (const int ranks : options_.ranks) {
    TROUPE_ASSIGN_OR_RETURN(jobs_[ranks], what_.Job(ranks));
    has_images_ = jobs_[ranks].train->spec().input_shape.rank() == 3;
    TROUPE_ASSIGN_OR_RETURN(flops_, StepFlops(jobs_[ranks]));
  }
  return absl::OkStatus();
}

absl::Status Contest::MeasureOurs(int ranks) {
  TROUPE_ASSIGN_OR_RETURN(
      const double rate,
      actors::StepsPerSecond(jobs_.at(ranks), options_.seconds));
  sides_[ranks].ours.push_back(rate);
  return absl::OkStatus();
}

std::vector<std::string> Contest::ModesFor(int ranks) const {
  std::vector<std::string> modes = {"eager", "compile"};
  if (has_images_) modes.push_back("channels_last");
  const auto first = sides_.find(options_.ranks.front());
  if (IsFirst(ranks) || first == sides_.end()) return modes;
  const auto rate_of = [&](const std::string& mode) {
    const auto rates = first->second.torch.find(mode);
    const bool ran = rates != first->second.torch.end();
    return ran && !rates->second.empty() ? Median(rates->second) : 0;
  };
  std::stable_sort(modes.begin(), modes.end(),
                   [&](const std::string& a, const std::string& b) {
                     return rate_of(a) > rate_of(b);
                   });
  return modes;
}

absl::Status Contest::MeasureTorch(int ranks) {
  if (!torch_.is_there()) return absl::OkStatus();
  Side& side = sides_[ranks];
  const bool is_new = side.torch.empty();
  if (is_new) side.modes = ModesFor(ranks);
  std::vector<std::string> running;
  for (const std::string& mode : side.modes) {
    TorchStep step;
    step.name = what_.name;
    step.precision = what_.precision;
    step.mode = mode;
    step.ranks = ranks;
    TROUPE_ASSIGN_OR_RETURN(const double rate,
                            torch_.StepsPerSecond(step, options_.seconds));
    Rates& rates = side.torch[mode];
    if (!std::isfinite(rate)) continue;
    rates.push_back(rate);
    running.push_back(mode);
    if (!IsFirst(ranks)) break;
  }
  side.modes = running;
  return absl::OkStatus();
}

void Contest::AddRates(int ranks) {
  const Side& side = sides_.at(ranks);
  const std::string best = BestOf(side.torch);
  const double peak = Median(peaks_);
  Figure& figure = table_.At(what_.Label(), ranks, kRate, Better::kHigher);
  figure.ours = side.ours;
  figure.note = Note(side, best);
  const double gflops = Gflops(Median(side.ours));
  figure.details = {{"gflops", gflops}, {"of_peak", gflops / peak}};
  if (best.empty()) return;
  figure.peer = side.torch.at(best);
  const double peer_gflops = Gflops(Median(figure.peer));
  figure.details.push_back({"peer_gflops", peer_gflops});
  figure.details.push_back({"peer_of_peak", peer_gflops / peak});
  for (const auto& [mode, rates] : side.torch) {
    if (rates.empty()) continue;
    figure.details.push_back({absl::StrCat("peer_", mode), Median(rates)});
  }
}

// Returns "61.2 GFLOP/s, 0.35 of the peak; torch 0.16: compile 5.1, eager 4.0".
std::string Contest::Note(const Side& side, const std::string& best) const {
  const double gflops = Gflops(Median(side.ours));
  const double peak = Median(peaks_);
  std::string note = absl::StrFormat("%.3g GFLOP/s, %.2g of the %speak", gflops,
                                     gflops / peak, native_peak_ ? "" : "f32 ");
  if (!native_peak_) absl::StrAppend(&note, " (no bf16 instructions)");
  if (best.empty()) return note;
  const double best_rate = Median(side.torch.at(best));
  absl::StrAppend(
      &note, absl::StrFormat("; torch %.2g: %s %.4g", Gflops(best_rate) / peak,
                             best, best_rate));
  for (const auto& [mode, rates] : side.torch) {
    if (mode == best || rates.empty()) continue;
    absl::StrAppend(&note, absl::StrFormat(", %s %.4g", mode, Median(rates)));
  }
  return note;
}

void Contest::AddScaling(int ranks) {
  const Figure* one = table_.Find(what_.Label(), 1, kRate);
  const Figure* many = table_.Find(what_.Label(), ranks, kRate);
  if (ranks == 1 || one == nullptr || many == nullptr) return;
  Figure& scaling = table_.At(what_.Label(), ranks, kScaling, Better::kLower);
  // Quotients are taken within a round, when the machine's speed was the same.
  for (std::size_t i = 0; i < one->ours.size(); ++i) {
    scaling.ours.push_back(one->ours[i] / many->ours[i]);
  }
  if (one->peer.size() != many->peer.size()) return;
  for (std::size_t i = 0; i < one->peer.size(); ++i) {
    scaling.peer.push_back(one->peer[i] / many->peer[i]);
  }
}

}  // namespace troupe::bench
