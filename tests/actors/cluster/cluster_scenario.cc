#include "tests/actors/cluster/cluster_scenario.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <initializer_list>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "actors/checkpoint/checkpoint.h"
#include "base/check.h"
#include "base/files/file_system.h"
#include "nn/random/philox.h"

namespace troupe::actors {
namespace {

// Number of messages for each node, about: while processes join and set up
// their ranks; in each step. They limit the message at which a fault strikes.
constexpr int kJoiningPerNode = 16;
constexpr int kMessagesPerStep = 60;
// Part of the liveness time-out for which a node may be silent twice without
// harm.
constexpr double kHarmless = 0.3;
// Number of writes of one node for a checkpoint, about.
constexpr int kWrites = 60;
// Limit on the read of a node's training set that fails.
constexpr int kReads = 8;

// Names of each FaultKind and Oddity, for messages.
constexpr const char* kFaults[] = {"cut", "reset", "pause", "death", "stale"};
constexpr const char* kOddities[] = {"nothing",
                                     "another configuration",
                                     "another version",
                                     "another size",
                                     "a number that is taken",
                                     "late",
                                     "unfit",
                                     "no ranks",
                                     "slow",
                                     "full disk",
                                     "stranger",
                                     "stop",
                                     "bad data"};
static_assert(std::size(kOddities) == static_cast<int>(Oddity::kEnd));

class Draws {
 public:
  explicit Draws(std::uint64_t seed)
      : stream_(nn::RandomKey(seed, nn::Purpose::kTest),
                {0, 0, nn::HashName("cluster")}) {}

  int Below(int n) { return static_cast<int>(stream_.Below(n)); }
  bool OneIn(int n) { return Below(n) == 0; }
  double Fraction() { return stream_.Bits32() * 0x1p-32; }

 private:
  nn::RandomStream stream_;
};

// Returns the message at which a fault strikes: for about half of the faults,
// one while the processes still join.
std::int64_t DrawMessage(const ClusterScenario& scenario, Draws& draws) {
  const int joining = kJoiningPerNode * scenario.nodes();
  const int steps = static_cast<int>(scenario.steps);
  return 1 + draws.Below(draws.OneIn(2) ? joining
                                        : joining + steps * kMessagesPerStep *
                                                        scenario.nodes());
}

Fault DrawFault(const ClusterScenario& scenario, Draws& draws, bool harmless) {
  const int nodes = scenario.nodes();
  Fault fault;
  fault.kind = static_cast<FaultKind>(draws.Below(5));
  const bool lasts =
      fault.kind == FaultKind::kCut || fault.kind == FaultKind::kPause;
  if (harmless && !lasts) fault.kind = FaultKind::kStale;
  fault.at = DrawMessage(scenario, draws);
  fault.node = draws.Below(nodes);
  if (fault.kind == FaultKind::kCut || fault.kind == FaultKind::kReset) {
    fault.peer = (fault.node + 1 + draws.Below(nodes - 1)) % nodes;
  }
  if (lasts) {
    fault.lasts = scenario.liveness_timeout *
                  (harmless || draws.OneIn(2) ? kHarmless * draws.Fraction()
                                              : 1.6 + 2 * draws.Fraction());
  }
  fault.heard = fault.kind == FaultKind::kDie && draws.OneIn(2);
  return fault;
}

void DrawOddity(ClusterScenario& scenario, Draws& draws) {
  scenario.oddity =
      static_cast<Oddity>(1 + draws.Below(static_cast<int>(Oddity::kEnd) - 1));
  if (!scenario.checkpoint_dir.empty() && draws.OneIn(2)) {
    scenario.oddity = Oddity::kFullDisk;
  }
  scenario.odd_node = draws.Below(scenario.nodes());
  scenario.odd_at = DrawMessage(scenario, draws);
  scenario.late = scenario.join_timeout * (2 * draws.Fraction());
  switch (scenario.oddity) {
    case Oddity::kOtherConfig:
    case Oddity::kOtherVersion:
    case Oddity::kOtherSize:
    case Oddity::kStranger:
      scenario.odd_node = 1 + draws.Below(scenario.nodes() - 1);
      break;
    case Oddity::kSameNumber:
      // Process 0 stays unique, as in any job.
      scenario.odd_node = scenario.nodes() - 1;
      if (scenario.nodes() == 2) scenario.oddity = Oddity::kOtherSize;
      break;
    case Oddity::kFullDisk:
      scenario.odd_at = draws.Below(kWrites);
      break;
    case Oddity::kBadData:
      scenario.odd_at = draws.Below(kReads);
      break;
    default:
      break;
  }
}

// Returns a number of stages among which the ranks can be divided.
int DrawStages(const ClusterScenario& scenario, Draws& draws) {
  int ranks = 0;
  for (const int here : scenario.ranks) ranks += here;
  for (const int stages : {3, 2}) {
    if (ranks % stages == 0 && draws.OneIn(3)) return stages;
  }
  return 1;
}

}  // namespace

bool IsOfMaster(const Fault& fault) {
  return fault.node == 0 || fault.peer == 0;
}

// Whether the job cannot survive it.
bool IsSevere(const ClusterScenario& scenario, const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::kDie:
      return true;
    case FaultKind::kReset:
      return true;
    case FaultKind::kCut:
      return IsOfMaster(fault) && fault.lasts >= scenario.liveness_timeout;
    case FaultKind::kPause:
      return fault.lasts >= scenario.liveness_timeout;
    case FaultKind::kStale:
      return false;
  }
  return false;
}

ClusterScenario DrawScenario(std::uint64_t seed,
                             const std::string& checkpoint_dir) {
  Draws draws(seed);
  ClusterScenario scenario;
  scenario.checkpoint_dir = checkpoint_dir;
  // Numbers of ranks among which the samples of a step can be divided.
  static const std::vector<int> kRanks[] = {
      {1, 1}, {1, 2}, {2, 2},       {1, 1, 1},       {2, 1, 1},
      {2, 2}, {3, 1}, {1, 1, 1, 1}, {1, 2, 2, 1, 2}, {1, 1, 2, 1, 1}};
  scenario.ranks = kRanks[draws.Below(std::size(kRanks))];
  scenario.stages = DrawStages(scenario, draws);
  scenario.run_inline = draws.OneIn(4);
  scenario.eager_bytes = draws.OneIn(2) ? 0 : 100;
  scenario.piece_bytes = draws.OneIn(2) ? 64 : 4096;
  scenario.steps = 1 + draws.Below(3);
  scenario.liveness_timeout = absl::Seconds(1 + draws.Below(10));
  if (draws.OneIn(2)) {
    scenario.plan.delay_max = scenario.liveness_timeout / 25;
  }
  if (draws.OneIn(4)) {
    scenario.message_time_max = scenario.liveness_timeout / 20000;
  }
  if (draws.OneIn(3)) DrawOddity(scenario, draws);
  if (scenario.oddity != Oddity::kNone || draws.OneIn(3)) {
    for (int faults = draws.Below(3); faults > 0; --faults) {
      scenario.plan.faults.push_back(
          DrawFault(scenario, draws, /*harmless=*/true));
    }
  } else if (!draws.OneIn(8)) {
    scenario.plan.faults.push_back(
        DrawFault(scenario, draws, /*harmless=*/false));
  }
  // Answers of an earlier attempt arrive while this attempt waits for its own.
  const bool dies = scenario.plan.faults.size() == 1 &&
                    scenario.plan.faults[0].kind == FaultKind::kDie;
  if (dies && draws.OneIn(2)) {
    Fault stale;
    stale.kind = FaultKind::kStale;
    stale.node = draws.Below(static_cast<int>(scenario.ranks.size()));
    stale.at = scenario.plan.faults[0].at + 1 + draws.Below(6);
    scenario.plan.faults.push_back(stale);
  }
  if (const char* const plan = std::getenv("TROUPE_SIM_PLAN")) {
    absl::StatusOr<FaultPlan> parsed = ParseFaultPlan(plan);
    TROUPE_CHECK(parsed.ok(), "TROUPE_SIM_PLAN parses");
    scenario.plan = *std::move(parsed);
  }
  return scenario;
}

std::string ToString(const ClusterScenario& scenario) {
  std::string text = absl::StrCat(
      "ranks ", absl::StrJoin(scenario.ranks, "+"), ", ", scenario.stages,
      " stages, ", scenario.steps, " steps, liveness ",
      absl::FormatDuration(scenario.liveness_timeout), ", TROUPE_SIM_PLAN='",
      scenario.plan.ToString(), "'");
  if (scenario.oddity == Oddity::kNone) return text;
  absl::StrAppend(&text, ", odd is process ", scenario.odd_node, ": ",
                  kOddities[static_cast<int>(scenario.oddity)], ", at ",
                  scenario.odd_at, ", by ",
                  absl::FormatDuration(scenario.late));
  return text;
}

std::vector<std::string> Situations(const ClusterScenario& scenario,
                                    const ClusterRun& run) {
  const NodeRun* told = nullptr;
  for (const NodeRun& node : run.nodes) {
    if (told == nullptr && node.verdict) told = &node;
  }
  const bool ok = told != nullptr && told->verdict->ok();
  const std::string end = ok ? ": done" : ": ended";
  std::vector<std::string> all = {
      absl::StrCat(scenario.nodes(), " nodes"),
      absl::StrCat(scenario.stages, " stages", end)};
  if (scenario.run_inline) all.push_back("inline" + end);
  if (scenario.oddity != Oddity::kNone) {
    all.push_back(kOddities[static_cast<int>(scenario.oddity)] + end);
  }
  if (ok && (*told->verdict)->stopped) all.push_back("stopped early");
  if (!scenario.checkpoint_dir.empty()) all.push_back("checkpoints" + end);
  for (std::size_t i = 0; i < run.struck.size(); ++i) {
    const Fault& fault = scenario.plan.faults[i];
    if (!run.struck[i]) continue;
    const char* const when =
        run.running_when_struck == scenario.nodes() ? "training" : "joining";
    all.push_back(absl::StrCat(fault.peer > 0 && fault.node > 0 ? "side " : "",
                               kFaults[static_cast<int>(fault.kind)],
                               IsSevere(scenario, fault) ? "" : " (harmless)",
                               " while ", when, end));
  }
  return all;
}

}  // namespace troupe::actors
