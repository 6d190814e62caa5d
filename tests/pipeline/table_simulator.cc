#include "tests/pipeline/table_simulator.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nn/random/philox.h"
#include "pipeline/table/action_rules.h"
#include "pipeline/table/table_cursor.h"
#include "pipeline/table/table_index.h"

namespace troupe::pipeline {
namespace {

struct SimulatedRank {
  explicit SimulatedRank(const StepTable& table) : cursor(table) {}

  TableCursor cursor;
  int computing = -1;    // action, or none
  int buckets_told = 0;  // number made ready by the backward that computes
  int in_flight = 0;
  std::vector<Signal> signals;  // given so far: the simulator's own list
  std::vector<int> launched;    // collectives, in order
  std::vector<int> finished;    // positions in `launched` that have ended
};

struct Message {
  int to = 0;
  ActionKind kind = ActionKind::kRecvActivation;
  int micro_batch = 0;
  int chunk = 0;
};

bool IsSame(const Action& a, const Action& b) {
  return a.kind == b.kind && a.index == b.index && a.chunk == b.chunk &&
         a.round == b.round;
}

class Simulator {
 public:
  Simulator(const Mesh& mesh, const std::vector<StepTable>& tables,
            std::uint64_t seed, const Placement& placement)
      : mesh_(mesh),
        placement_(placement.empty() ? LoopedPlacement(mesh.pp(), 1)
                                     : placement),
        draws_(nn::RandomKey(seed, nn::Purpose::kTest), {}) {
    for (const StepTable& table : tables) ranks_.emplace_back(table);
    run_.started.resize(ranks_.size());
    run_.in_flight_max.resize(ranks_.size());
  }

  TableRun Run() {
    while (run_.error.empty()) {
      std::vector<std::function<void()>> moves = Moves();
      if (moves.empty()) break;
      moves[draws_.Below(moves.size())]();
    }
    if (run_.error.empty()) run_.error = WhoStandsWhere();
    return std::move(run_);
  }

 private:
  const Action& ActionOf(int rank, int id) const {
    return ranks_[rank].cursor.table().actions[id];
  }

  std::vector<std::function<void()>> Moves() {
    std::vector<std::function<void()>> moves;
    for (int r = 0; r < static_cast<int>(ranks_.size()); ++r) {
      const SimulatedRank& rank = ranks_[r];
      const int next = rank.cursor.NextRunnable(rank.computing >= 0);
      if (next >= 0) moves.push_back([this, r, next] { Start(r, next); });
      if (rank.computing >= 0) moves.push_back([this, r] { Compute(r); });
      for (int i = 0; i < static_cast<int>(rank.launched.size()); ++i) {
        if (MayFinish(r, i)) moves.push_back([this, r, i] { Reduced(r, i); });
      }
    }
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      moves.push_back([this, i] { Arrive(i); });
    }
    return moves;
  }

  void Note(int rank, int id) {
    const int chunks = ranks_[rank].cursor.table().chunks();
    absl::StrAppend(&run_.started[rank], run_.started[rank].empty() ? "" : " ",
                    ActionOf(rank, id).ToString(chunks));
  }

  void Wrong(int rank, const Action& action, const char* what) {
    const int chunks = ranks_[rank].cursor.table().chunks();
    run_.error =
        absl::StrCat("rank ", rank, ": ", action.ToString(chunks), " ", what);
  }

  void Give(int rank, Signal signal) {
    ranks_[rank].cursor.Give(signal);
    ranks_[rank].signals.push_back(signal);
  }

  void Finish(int rank, int id) {
    ranks_[rank].cursor.Finish(id);
    ranks_[rank].signals.push_back({SignalKind::kDone, id});
  }

  bool IsThere(int rank, const Signal& need) const {
    const std::vector<Signal>& given = ranks_[rank].signals;
    if (need.kind != SignalKind::kAllReduced) {
      return std::find(given.begin(), given.end(), need) != given.end();
    }
    return std::count_if(given.begin(), given.end(), [](const Signal& s) {
             return s.kind == SignalKind::kBucketReduced;
           }) == ranks_[rank].cursor.table().buckets();
  }

  void Start(int r, int id) {
    SimulatedRank& rank = ranks_[r];
    const Action& action = ActionOf(r, id);
    Note(r, id);
    for (const Signal& need : action.needs) {
      if (!IsThere(r, need)) return Wrong(r, action, "started too early");
    }
    rank.cursor.Start(id);
    if (IsCompute(action.kind)) {
      if (rank.computing >= 0) return Wrong(r, action, "began beside another");
      rank.computing = id;
      rank.buckets_told = 0;
      rank.in_flight += action.kind == ActionKind::kForward;
      run_.in_flight_max[r] = std::max(run_.in_flight_max[r], rank.in_flight);
    } else if (IsCollective(action.kind)) {
      rank.launched.push_back(id);
      rank.finished.push_back(0);
      CheckOrder(r);
    } else {
      Finish(r, id);
      if (IsSend(action.kind)) Send(r, action);
    }
  }

  void Send(int r, const Action& action) {
    const bool forward = action.kind == ActionKind::kSendActivation;
    const int pp = mesh_.CoordOf(r, kPpAxis);
    const int to = StagesAt(placement_, pp)[action.chunk] + (forward ? 1 : -1);
    if (to < 0 || to >= static_cast<int>(placement_.size())) {
      return Wrong(r, action, "has nobody to send to");
    }
    messages_.push_back(
        {mesh_.RankWith(r, kPpAxis, placement_[to].pp),
         forward ? ActionKind::kRecvActivation : ActionKind::kRecvGradient,
         action.index, placement_[to].chunk});
  }

  void Arrive(std::size_t i) {
    const Message message = messages_[i];
    messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(i));
    const int id = ranks_[message.to].cursor.table().Find(
        message.kind, message.micro_batch, message.chunk);
    if (id < 0) {
      return Wrong(message.to,
                   {message.kind, message.micro_batch, {}, message.chunk},
                   "was sent and is not in the table");
    }
    Note(message.to, id);
    Finish(message.to, id);
  }

  // Runs one piece of the current compute action: a bucket's last gradient, or
  // the end.
  void Compute(int r) {
    SimulatedRank& rank = ranks_[r];
    const StepTable& table = rank.cursor.table();
    const Action& action = ActionOf(r, rank.computing);
    const bool weights = action.kind == ActionKind::kBackward ||
                         action.kind == ActionKind::kBackwardWeights;
    if (weights && action.index == table.micro_batches() - 1 &&
        rank.buckets_told < table.bucket_counts()[action.chunk]) {
      const int bucket = rank.buckets_told++;
      Give(r, {SignalKind::kBucketReady, bucket, action.chunk});
      Give(r, {SignalKind::kBucketReleased, bucket, action.chunk});
      return;
    }
    rank.in_flight -= weights;
    Finish(r, std::exchange(rank.computing, -1));
  }

  // Returns the collectives that the rank has started in a group, in order.
  std::vector<int> LaunchedIn(int r, GroupId group) const {
    std::vector<int> launched;
    for (int id : ranks_[r].launched) {
      if (GroupOf(ActionOf(r, id)) == group) launched.push_back(id);
    }
    return launched;
  }

  // Compares the rank's newest collective with those of its group's ranks.
  void CheckOrder(int r) {
    const Action& mine = ActionOf(r, ranks_[r].launched.back());
    const GroupId group = GroupOf(mine);
    const std::size_t place = LaunchedIn(r, group).size() - 1;
    for (int other : mesh_.Group(r, group)) {
      const std::vector<int> launched = LaunchedIn(other, group);
      if (launched.size() <= place) continue;
      const Action& theirs = ActionOf(other, launched[place]);
      if (IsSame(theirs, mine)) continue;
      run_.error =
          absl::StrCat("rank ", r, " starts ", mine.ToString(), " where rank ",
                       other, " starts ", theirs.ToString());
    }
  }

  // Returns whether all ranks of the group have started the i-th collective of
  // `r`.
  bool MayFinish(int r, int i) const {
    if (ranks_[r].finished[i]) return false;
    const Action& action = ActionOf(r, ranks_[r].launched[i]);
    for (int other : mesh_.Group(r, GroupOf(action))) {
      const std::vector<int>& theirs = ranks_[other].launched;
      if (std::none_of(theirs.begin(), theirs.end(), [&](int id) {
            return IsSame(ActionOf(other, id), action);
          })) {
        return false;
      }
    }
    return true;
  }

  void Reduced(int r, int i) {
    const int id = ranks_[r].launched[i];
    const Action& action = ActionOf(r, id);
    ranks_[r].finished[i] = 1;
    Finish(r, id);
    if (action.kind == ActionKind::kReduceFindings ||
        action.kind == ActionKind::kReduceNorms) {
      return;
    }
    const bool another_round =
        action.kind == ActionKind::kReduceBucket &&
        ranks_[r].cursor.table().Find(action.kind, action.index, action.chunk,
                                      action.round + 1) >= 0;
    if (another_round) return;
    Give(r,
         action.kind == ActionKind::kReduceLoss
             ? Signal{SignalKind::kLossReduced, 0}
             : Signal{SignalKind::kBucketReduced, action.index, action.chunk});
  }

  std::string WhoStandsWhere() const {
    std::string text;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const TableCursor& cursor = ranks_[r].cursor;
      if (cursor.complete()) continue;
      absl::StrAppend(&text, text.empty() ? "" : "; ", "rank ", r, " has left ",
                      cursor.Unfinished());
    }
    return text;
  }

  const Mesh mesh_;
  const Placement placement_;
  nn::RandomStream draws_;
  std::vector<SimulatedRank> ranks_;
  std::vector<Message> messages_;
  TableRun run_;
};

}  // namespace

TableRun RunTables(const Mesh& mesh, const std::vector<StepTable>& tables,
                   std::uint64_t seed, const Placement& placement) {
  return Simulator(mesh, tables, seed, placement).Run();
}

void LimitInFlight(StepTable& table, int n) {
  const TableIndex index(table);
  for (Action& action : table.actions) {
    if (action.kind != ActionKind::kForward || action.index < n) continue;
    const int m = action.index - n;
    const int done = std::max(index.Find(ActionKind::kBackward, m),
                              index.Find(ActionKind::kBackwardWeights, m));
    action.needs.push_back({SignalKind::kDone, done});
  }
}

}  // namespace troupe::pipeline
