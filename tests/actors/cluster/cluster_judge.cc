#include "tests/actors/cluster/cluster_judge.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <initializer_list>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/supervision/held_verdict.h"
#include "base/files/file_system.h"

namespace troupe::actors {
namespace {

// Returns the first process that a text names; -1: none.
int Named(const std::string& text) {
  constexpr absl::string_view kProcess = "process ";
  const std::size_t at = text.find(kProcess.data());
  if (at == std::string::npos) return -1;
  return text[at + kProcess.size()] - '0';
}

// Returns the first rank that a text calls the root of a wait; -1: none.
int RootIn(const std::string& text) {
  for (const char* const begin : {"root of the wait is ", "of the wait are "}) {
    const std::size_t at = text.find(begin);
    if (at != std::string::npos) {
      return std::atoi(text.c_str() + text.find_first_of("0123456789", at));
    }
  }
  return -1;
}

// Returns a node's result without the waits of its ranks: the supervisor adds
// these, and a node that is still setting up gets only the name of the lost
// process.
std::string Text(const NodeRun& node) {
  if (!node.verdict) return "nothing";
  const absl::Status status = node.verdict->status();
  return absl::StrCat(absl::StatusCodeToString(status.code()), ": ",
                      status.message().substr(0, status.message().find('\n')));
}

constexpr absl::string_view kTwoOfOneNumber = "two processes come with number";

// Checks the results of all nodes, given which of them a fault has struck.
class Judgement {
 public:
  Judgement(const ClusterScenario& scenario, const ClusterRun& run)
      : scenario_(scenario), run_(run) {
    for (std::size_t i = 0; i < run.struck.size(); ++i) {
      const Fault& fault = scenario.plan.faults[i];
      if (!run.struck[i] || !IsSevere(scenario, fault)) continue;
      culprits_.insert(fault.node);
      if (fault.kind == FaultKind::kPause && fault.node == 0) {
        process_0_stood_still_ = true;
      }
      if (fault.peer < 0) continue;
      // If a link fails, either end may be named. A node that has lost process
      // 0 decides alone.
      culprits_.insert(fault.peer);
      if (IsOfMaster(fault)) alone_.insert(std::max(fault.node, fault.peer));
    }
    master_struck_ = culprits_.count(0) != 0 && alone_.empty();
  }

  std::string Verdicts() const {
    const NodeRun* first = nullptr;
    for (std::size_t i = 0; i < run_.nodes.size(); ++i) {
      const NodeRun& node = run_.nodes[i];
      const int number = static_cast<int>(i);
      if (node.gone || !node.came) continue;
      if (!node.verdict) return absl::StrCat("process ", i, " never ended");
      if (node.verdicts > 1) return absl::StrCat("process ", i, " ended twice");
      if (number == scenario_.nodes()) {
        if (!IsTurnedAway(node)) return Wrong(number);
        continue;
      }
      if (number == scenario_.odd_node && IsTooLate(Oddity::kLate)) continue;
      if (!IsExpected(node)) return Wrong(number);
      const std::string wrong = WrongWaits(node);
      if (!wrong.empty()) return absl::StrCat(wrong, ": ", Wrong(number));
      // These nodes cannot get the others' result.
      if (alone_.count(number) != 0 || master_struck_) continue;
      if (first == nullptr) first = &node;
      if (Text(*first) != Text(node)) {
        return absl::StrCat("one says ", Text(*first), ", process ", i,
                            " says ", Text(node));
      }
    }
    return "";
  }

 private:
  bool IsTooLate(Oddity oddity) const {
    return scenario_.oddity == oddity &&
           scenario_.late > scenario_.join_timeout;
  }
  // The coordinator notices a late node within two beats.
  bool IsJustInTime() const {
    return scenario_.late <
           scenario_.join_timeout + scenario_.liveness_timeout / 2;
  }
  // Whether the stranger was refused with a reason, or found that the job had
  // ended.
  bool IsTurnedAway(const NodeRun& node) const {
    return !node.verdict->ok() &&
           (Says(node, {kTwoOfOneNumber}) || Says(node, {"process 0 "}) ||
            Says(node, {"the job has ended"}));
  }
  static bool Says(const NodeRun& node,
                   std::initializer_list<absl::string_view> parts) {
    const std::string text = Text(node);
    return std::all_of(parts.begin(), parts.end(), [&](absl::string_view part) {
      return absl::StrContains(text, part);
    });
  }
  // Whether the error is one of `actor` of a rank of the odd node.
  bool IsOfOddRank(const NodeRun& node, absl::string_view actor) const {
    int rank = 0;
    for (int i = 0; i < scenario_.odd_node; ++i) rank += scenario_.ranks[i];
    for (int i = 0; i < scenario_.ranks[scenario_.odd_node]; ++i, ++rank) {
      const std::string whose = absl::StrCat("rank ", rank, ", ", actor, ": ");
      if (Says(node, {whose})) return true;
    }
    return false;
  }
  // Whether the node's disk was full, and the error says so, with a rank of
  // that node. Process 0 also makes the folder, and its error for that has no
  // rank.
  bool IsOfFullDisk(const NodeRun& node) const {
    if (!run_.nodes[scenario_.odd_node].disk_was_full) return false;
    if (!Says(node, {"no space left on device"})) return false;
    return IsOfOddRank(node, "checkpointer") || scenario_.odd_node == 0;
  }
  bool IsExpected(const NodeRun& node) const {
    const bool ok = node.verdict->ok();
    const std::string odd = absl::StrCat("process ", scenario_.odd_node, " ");
    const std::string node_name = absl::StrCat("node", scenario_.odd_node);
    switch (scenario_.oddity) {
      case Oddity::kOtherConfig:
        return Says(node, {"train.lr is 0.", odd, node_name});
      case Oddity::kOtherVersion:
        return Says(node, {"the version is ", odd, node_name});
      case Oddity::kOtherSize:
        return Says(node, {odd, node_name, "comes as one of "});
      case Oddity::kSameNumber:
        return Says(node, {kTwoOfOneNumber, node_name});
      case Oddity::kLate:
        if (!IsTooLate(Oddity::kLate)) break;
        return Says(node, {odd, "did not join within"}) ||
               (ok && IsJustInTime());
      case Oddity::kSlow:
        if (!IsTooLate(Oddity::kSlow)) break;
        return Says(node, {odd, "did not set up its ranks within"}) ||
               (ok && IsJustInTime());
      case Oddity::kUnfit:
        return Says(node, {"loss_scale"}) &&
               (scenario_.odd_node == 0 || Says(node, {odd, node_name}));
      case Oddity::kNoRanks:
        return Says(node, {odd, node_name, "no memory for its ranks"});
      case Oddity::kFullDisk:
        if (IsOfFullDisk(node)) return true;
        break;
      case Oddity::kBadData:
        if (!run_.nodes[scenario_.odd_node].data_was_bad) break;
        return IsOfOddRank(node, "loader") && Says(node, {"a bad sample"});
      default:
        break;
    }
    return ok || culprits_.count(Named(Text(node))) != 0 || IsLeftBehind(node);
  }
  // Whether the node is process 0, which was stopped, and one of its ranks has
  // reported the error: a link's end is noticed before its reason.
  bool IsLeftBehind(const NodeRun& node) const {
    return &node == &run_.nodes[0] && process_0_stood_still_ &&
           Says(node, {"rank ", "is lost: "});
  }
  // Returns what is wrong with the waits in a verdict; empty: nothing.
  std::string WrongWaits(const NodeRun& node) const {
    const std::string text(node.verdict->status().message());
    if (absl::StrContains(text, "of an earlier attempt")) {
      return "a stale answer was taken";
    }
    if (!absl::IsUnavailable(node.verdict->status())) return "";
    const bool asked = absl::StrContains(text, "\n");
    if (node.trained && !asked) return "nobody was asked who waits for whom";
    const int root = RootIn(text);
    // If process 0 is lost, a rank that only it could have asked may be the
    // root.
    if (root < 0 || absl::StrContains(text, "elsewhere, and not asked")) {
      return "";
    }
    // A process 0 that was stopped finds, when it resumes, that the others have
    // left.
    if (&node == &run_.nodes[0] && process_0_stood_still_) return "";
    if (culprits_.count(ProcessOf(root)) == 0) return "another one is the root";
    // The wait is for a collective of replicas or of the loss, or for a tensor
    // between stages.
    const bool collective = absl::StrContains(text, ", collective ") &&
                            absl::StrContains(text, " of group ");
    if (!absl::StrContains(text, " in step ") ||
        (!collective && !absl::StrContains(text, "micro-batch "))) {
      return "what is waited for is not named";
    }
    return "";
  }
  int ProcessOf(int rank) const {
    int process = 0;
    for (int ranks : scenario_.ranks) {
      if ((rank -= ranks) < 0) break;
      ++process;
    }
    return process;
  }
  std::string Wrong(int node) const {
    return absl::StrCat("process ", node, " says ",
                        run_.nodes[node].verdict->status().ToString());
  }

  const ClusterScenario& scenario_;
  const ClusterRun& run_;
  std::set<int> culprits_;  // one of them must be named
  std::set<int> alone_;     // nodes that have lost process 0
  bool master_struck_ = false, process_0_stood_still_ = false;
};

// Returns the time by which a job must have ended, whatever struck it.
absl::Duration Deadline(const ClusterScenario& scenario) {
  absl::Duration time = scenario.join_timeout + 3 * scenario.liveness_timeout +
                        scenario.late + 100 * scenario.plan.delay_max +
                        absl::Seconds(10);
  for (const Fault& fault : scenario.plan.faults) time += fault.lasts;
  return time;
}

// Checks that nodes which lose one that stands still, or that dies without a
// word, say so within the liveness time-out, and the time in which the ranks
// are asked what they wait for.
std::string JudgeSilence(const ClusterScenario& scenario,
                         const ClusterRun& run) {
  if (scenario.plan.faults.size() != 1 || !run.struck[0] ||
      run.running_when_struck < scenario.nodes()) {
    return "";
  }
  const Fault& fault = scenario.plan.faults[0];
  const bool silent = fault.kind == FaultKind::kPause ||
                      (fault.kind == FaultKind::kDie && !fault.heard);
  if (!silent || !IsSevere(scenario, fault)) return "";
  const absl::Duration limit = scenario.liveness_timeout * 0.95 +
                               absl::FromChrono(HeldVerdict::kHeldMax) +
                               4 * scenario.plan.delay_max;
  for (std::size_t i = 0; i < run.nodes.size(); ++i) {
    const NodeRun& node = run.nodes[i];
    if (static_cast<int>(i) == fault.node || !node.verdict) continue;
    const absl::Duration after = node.verdict_after - run.struck_after;
    if (node.verdict->ok() || after <= limit) continue;
    return absl::StrCat("process ", i, " named the silent one after ",
                        absl::FormatDuration(after));
  }
  return "";
}

std::string JudgeCheckpoints(const ClusterScenario& scenario,
                             const ClusterRun& run) {
  base::PosixFileSystem files;
  if (!files.Exists(scenario.checkpoint_dir)) return "";
  bool any_gone = false;
  for (const NodeRun& node : run.nodes) any_gone = any_gone || node.gone;
  const auto names = files.List(scenario.checkpoint_dir);
  if (!names.ok()) return names.status().ToString();
  for (const std::string& name : *names) {
    // Nodes that live remove unfinished checkpoints.
    if (!any_gone && absl::StrContains(name, ".tmp-")) return name + " is left";
  }
  const auto paths = ListCheckpoints(files, scenario.checkpoint_dir);
  if (!paths.ok()) return paths.status().ToString();
  for (const std::string& path : *paths) {
    const absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(files, path);
    if (!checkpoint.ok()) return checkpoint.status().ToString();
    if (checkpoint->ModelNames().size() != 6) return path + " lacks tensors";
  }
  for (const NodeRun& node : run.nodes) {
    if (!node.verdict || !node.verdict->ok()) continue;
    const std::string& path = (*node.verdict)->checkpoint;
    if (!files.Exists(path)) return absl::StrCat("\"", path, "\" is not there");
  }
  return "";
}

}  // namespace

std::string Judge(const ClusterScenario& scenario, const ClusterRun& run) {
  std::string wrong = Judgement(scenario, run).Verdicts();
  if (!wrong.empty()) return wrong;
  wrong = JudgeSilence(scenario, run);
  if (!wrong.empty()) return wrong;
  if (run.time > Deadline(scenario)) {
    return absl::StrCat("the end came after ", absl::FormatDuration(run.time));
  }
  const bool all_well = scenario.plan.faults.empty() && run.nodes[0].verdict &&
                        run.nodes[0].verdict->ok();
  if (run.hurried && all_well) return "process 0 lacks a farewell";
  if (run.left != 0) return absl::StrCat(run.left, " actors are left");
  if (scenario.checkpoint_dir.empty()) return "";
  return JudgeCheckpoints(scenario, run);
}

}  // namespace troupe::actors
