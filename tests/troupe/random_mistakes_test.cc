// Programs with one mistake each, made by seed: all ranks end soon, with one
// status that names a rank, and for calls that do not match the places of both.
//
// A program is a list of steps, which all ranks take; one rank makes the
// mistake at one step. The calls of rank r have the places "rank<r>.cc:<step>".

#include <dirent.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/random/philox.h"
#include "tests/base/seeds.h"
#include "troupe/simulate.h"
#include "troupe/troupe.h"

namespace troupe {
namespace {

using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr int kRanksMax = 4;
// Ten times the promise.
constexpr absl::Duration kDeadline = absl::Seconds(20);
// Timeout of programs whose ranks wait for each other, which nothing else ends.
constexpr absl::Duration kTimeout = absl::Milliseconds(200);

enum class Op {
  kAllReduce,
  kBroadcast,
  kReduce,
  kAllGather,
  kGather,
  kScatter,
  kReduceScatter,
  kAllToAll,
  kBarrier,
  kMessage,  // root to the rank after it
};
constexpr int kCollectives = 9;

struct Step {
  Op op = Op::kBarrier;
  int elements = 1;  // number in a row
  DType dtype = DType::kF32;
  ReduceOp reduce = ReduceOp::kSum;
  int root = 0;
  bool waits_later = false;
};

enum class Mistake {
  kNone,
  kLeftOut,
  kAnotherCollective,
  kAnotherShape,
  kAnotherDtype,
  kAnotherOp,
  kAnotherRoot,
  kReturn,
  kThrow,
  kRecvWithoutSend,
  kSendLeftOut,
  kRecvBeforeSend,
  kGroupsInAnotherOrder,
  kGroupOfItsOwn,
};
constexpr int kMistakes = 13;  // besides kNone

bool IsMismatch(Mistake mistake) {
  return mistake >= Mistake::kLeftOut && mistake <= Mistake::kAnotherRoot;
}

// Whether the ranks wait for each other.
bool IsDeadlock(Mistake mistake) {
  return mistake == Mistake::kRecvWithoutSend ||
         mistake == Mistake::kSendLeftOut ||
         mistake == Mistake::kRecvBeforeSend ||
         mistake == Mistake::kGroupsInAnotherOrder;
}

struct Plan {
  int ranks = 2;
  std::vector<Step> steps;
  Mistake mistake = Mistake::kNone;
  int rank = 0;       // the one that makes it
  int at = 0;         // its step
  Step in_its_place;  // replaces it, in a mismatch

  std::string ToString() const {
    std::string text =
        absl::StrCat(ranks, " ranks; mistake ", static_cast<int>(mistake),
                     " of rank ", rank, " at ", at, "; steps");
    for (const Step& step : steps) {
      absl::StrAppend(&text, " ", static_cast<int>(step.op),
                      step.waits_later ? "*" : "");
    }
    return text;
  }
};

class Planner {
 public:
  Planner(std::uint64_t seed, Mistake mistake)
      : random_(nn::RandomKey(seed, nn::Purpose::kTest), {}) {
    plan_.mistake = mistake;
  }

  Plan Make() {
    plan_.ranks = 2 + Below(kRanksMax - 1);
    plan_.rank = Below(plan_.ranks);
    const int steps = 3 + Below(6);
    for (int i = 0; i < steps; ++i) {
      const Op before = i == 0 ? Op::kMessage : plan_.steps.back().op;
      plan_.steps.push_back(Draw(before));
    }
    // One step remains behind the mistake.
    plan_.at = Below(steps - 1);
    Plant();
    return plan_;
  }

 private:
  int Below(int end) { return static_cast<int>(random_.Below(end)); }

  // Returns a step of another kind than `before`.
  Step Draw(Op before) {
    Step step;
    do {
      step.op = static_cast<Op>(Below(kCollectives + 1));
    } while (step.op == before);
    step.elements = 1 + Below(2000);
    step.dtype = Below(2) == 0 ? DType::kF32 : DType::kF64;
    step.reduce = Below(2) == 0 ? ReduceOp::kSum : ReduceOp::kMax;
    step.root = Below(plan_.ranks);
    step.waits_later = Below(3) == 0;
    return step;
  }

  void Plant() {
    Step& step = plan_.steps[plan_.at];
    Step& next = plan_.steps[plan_.at + 1];
    const auto is_one_of = [&](std::vector<Op> ops) {
      return std::find(ops.begin(), ops.end(), step.op) != ops.end();
    };
    const auto choose = [&](std::vector<Op> ops) {
      if (!is_one_of(ops)) step.op = ops[Below(static_cast<int>(ops.size()))];
    };
    step.waits_later = next.waits_later = false;
    switch (plan_.mistake) {
      case Mistake::kLeftOut:
        if (step.op == Op::kMessage) step.op = Op::kAllReduce;
        if (next.op == Op::kMessage || next.op == step.op) {
          next.op = step.op == Op::kBroadcast ? Op::kReduce : Op::kBroadcast;
        }
        break;
      case Mistake::kAnotherCollective:
        if (step.op == Op::kMessage) step.op = Op::kAllToAll;
        break;
      case Mistake::kAnotherShape:
        if (step.op == Op::kMessage) step.op = Op::kGather;
        if (step.op == Op::kBarrier) step.op = Op::kScatter;
        break;
      case Mistake::kAnotherDtype:
        if (step.op == Op::kMessage) step.op = Op::kAllGather;
        if (step.op == Op::kBarrier) step.op = Op::kBroadcast;
        break;
      case Mistake::kAnotherOp:
        choose({Op::kAllReduce, Op::kReduce, Op::kReduceScatter});
        break;
      case Mistake::kAnotherRoot:
        choose({Op::kBroadcast, Op::kReduce, Op::kGather, Op::kScatter});
        break;
      case Mistake::kSendLeftOut:
        step.op = Op::kMessage;
        step.root = plan_.rank;
        break;
      default:
        break;
    }
    plan_.in_its_place = step;
    Step& wrong = plan_.in_its_place;
    if (plan_.mistake == Mistake::kAnotherCollective) {
      do {
        wrong.op = static_cast<Op>(Below(kCollectives));
      } while (wrong.op == step.op);
    } else if (plan_.mistake == Mistake::kAnotherShape) {
      wrong.elements += 1 + Below(10);
    } else if (plan_.mistake == Mistake::kAnotherDtype) {
      wrong.dtype = step.dtype == DType::kF32 ? DType::kF64 : DType::kF32;
    } else if (plan_.mistake == Mistake::kAnotherOp) {
      wrong.reduce = ReduceOp::kMin;
    } else if (plan_.mistake == Mistake::kAnotherRoot) {
      wrong.root = (step.root + 1) % plan_.ranks;
    }
  }

  nn::RandomStream random_;
  Plan plan_;
};

CallPlace PlaceOf(int rank, int step) {
  static const char* const kFiles[kRanksMax] = {"rank0.cc", "rank1.cc",
                                                "rank2.cc", "rank3.cc"};
  return {kFiles[rank], step};
}

// Takes one step; what waits later is added to `works`.
void Take(Rank& rank, const Step& step, int at, std::vector<Work>& works) {
  Group& world = rank.world();
  const CallPlace place = PlaceOf(rank.number(), at);
  const auto row = [&] { return rank.Ones({step.elements}, step.dtype); };
  const auto rows = [&] {
    return rank.Ones({rank.size(), step.elements}, step.dtype);
  };
  const auto keep = [&](Work work) {
    works.push_back(work);
    if (!step.waits_later) works.back().Wait();
  };
  switch (step.op) {
    case Op::kAllReduce:
      if (step.waits_later)
        return keep(world.StartAllReduce(row(), step.reduce, place));
      return world.AllReduce(row().tensor(), step.reduce, place);
    case Op::kBroadcast:
      if (step.waits_later)
        return keep(world.StartBroadcast(row(), step.root, place));
      return world.Broadcast(row(), step.root, place);
    case Op::kReduce:
      return keep(world.StartReduce(row(), step.root, step.reduce, place));
    case Op::kAllGather:
      world.AllGather(row(), place);
      return;
    case Op::kGather:
      world.Gather(row(), step.root, place);
      return;
    case Op::kScatter:
      return world.Scatter(rows(), row(), step.root, place);
    case Op::kReduceScatter:
      world.ReduceScatter(rows(), step.reduce, place);
      return;
    case Op::kAllToAll:
      world.AllToAll(rows(), place);
      return;
    case Op::kBarrier:
      return keep(world.StartBarrier(place));
    case Op::kMessage:
      if (rank.number() == step.root) {
        keep(world.StartSend(row(), (step.root + 1) % rank.size(), /*tag=*/1,
                             place));
      } else if (rank.number() == (step.root + 1) % rank.size()) {
        world.Recv(row(), step.root, /*tag=*/1, place);
      }
      return;
  }
}

// Makes the mistake. Returns whether the rank goes on with the step.
bool Err(Rank& rank, const Plan& plan, std::vector<Work>& works) {
  const CallPlace place = PlaceOf(rank.number(), plan.at);
  const int peer = (rank.number() + 1) % rank.size();
  switch (plan.mistake) {
    case Mistake::kThrow:
      throw std::runtime_error("no such file");
    case Mistake::kRecvWithoutSend:
      rank.world().Recv(rank.Ones({1}), peer, /*tag=*/99, place);
      return true;
    case Mistake::kLeftOut:
    case Mistake::kSendLeftOut:
      return false;
    case Mistake::kGroupOfItsOwn:
      rank.NewGroup({rank.number(), peer}, place)
          .AllReduce(rank.Ones({1}).tensor(), ReduceOp::kSum, place);
      return true;
    default:
      Take(rank, plan.in_its_place, plan.at, works);
      return false;
  }
}

// Mistakes of two ranks, each right alone.
void Cross(Rank& rank, const Plan& plan) {
  const CallPlace place = PlaceOf(rank.number(), plan.at);
  const int peer = (plan.rank + 1) % rank.size();
  if (rank.number() != plan.rank && rank.number() != peer) return;
  const int other = rank.number() == peer ? plan.rank : peer;
  if (plan.mistake == Mistake::kRecvBeforeSend) {
    rank.world().Recv(rank.Ones({1}), other, /*tag=*/2, place);
    rank.world().Send(rank.Ones({1}), other, /*tag=*/2, place);
    return;
  }
  Group& first = rank.NewGroup({plan.rank, peer}, place);
  Group& second = rank.NewGroup({plan.rank, peer}, place);
  const bool swaps = rank.number() == plan.rank;
  (swaps ? second : first).Barrier(place);
  (swaps ? first : second).Barrier(place);
}

// Counts the ranks whose code has begun and not ended, by return or unwinding.
class Alive {
 public:
  explicit Alive(std::atomic<int>& count) : count_(count) { ++count_; }
  ~Alive() { --count_; }

 private:
  std::atomic<int>& count_;
};

Program ProgramOf(const Plan& plan, std::atomic<int>& alive,
                  std::shared_ptr<int> token) {
  return [plan, &alive, token](Rank& rank) {
    const Alive here(alive);
    std::vector<Work> works;
    for (int i = 0; i < static_cast<int>(plan.steps.size()); ++i) {
      const bool errs = i == plan.at && rank.number() == plan.rank &&
                        plan.mistake != Mistake::kNone;
      if (i == plan.at && (plan.mistake == Mistake::kRecvBeforeSend ||
                           plan.mistake == Mistake::kGroupsInAnotherOrder)) {
        Cross(rank, plan);
      } else if (errs) {
        if (plan.mistake == Mistake::kReturn) return;
        if (!Err(rank, plan, works)) continue;
      }
      Take(rank, plan.steps[i], i, works);
    }
    for (Work& work : works) work.Wait();
    rank.world().Barrier(
        PlaceOf(rank.number(), static_cast<int>(plan.steps.size())));
  };
}

int ThreadsHere() {
  int threads = 0;
  DIR* const tasks = opendir("/proc/self/task");
  while (const dirent* entry = readdir(tasks)) {
    if (entry->d_name[0] != '.') ++threads;
  }
  closedir(tasks);
  return threads;
}

// Expects the number of threads, which the kernel lists until a moment after
// their end.
void ExpectThreads(int threads) {
  const absl::Time give_up = absl::Now() + kDeadline;
  while (ThreadsHere() != threads && absl::Now() < give_up) sched_yield();
  EXPECT_EQ(ThreadsHere(), threads);
}

void ExpectTheMistakeNamed(const Plan& plan, const absl::Status& status) {
  const std::string text(status.message());
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(text, ContainsRegex("^rank [0-3]: "));
  if (IsMismatch(plan.mistake)) {
    // The call of the rank with the mistake, and that of a peer.
    const bool left_out = plan.mistake == Mistake::kLeftOut;
    EXPECT_THAT(text, ContainsRegex(absl::StrCat("\\(\\) at rank", plan.rank,
                                                 ".cc:", plan.at + left_out,
                                                 "($|[^0-9])")));
    int peers = 0;
    for (int rank = 0; rank < plan.ranks; ++rank) {
      if (rank == plan.rank) continue;
      const std::string place =
          absl::StrCat("() at rank", rank, ".cc:", plan.at);
      peers += text.find(place) != std::string::npos;
    }
    EXPECT_GT(peers, 0) << text;
  } else if (plan.mistake == Mistake::kReturn) {
    EXPECT_THAT(text,
                HasSubstr(absl::StrCat("rank ", plan.rank, " has returned")));
  } else if (plan.mistake == Mistake::kThrow) {
    EXPECT_THAT(text, HasSubstr(absl::StrCat("rank ", plan.rank, ": ")));
    EXPECT_THAT(text, HasSubstr("no such file"));
  } else {
    EXPECT_THAT(text, HasSubstr(absl::StrCat("rank", plan.rank, ".cc:")));
  }
}

// Runs the program in threads, then by a seed in one thread.
void RunBoth(const Plan& plan, std::uint64_t seed) {
  SpawnOptions options;
  options.ranks = plan.ranks;
  if (IsDeadlock(plan.mistake)) options.timeout = kTimeout;
  if (plan.mistake == Mistake::kGroupOfItsOwn) options.timeout = kTimeout;
  for (const bool simulated : {false, true}) {
    SCOPED_TRACE(simulated ? "simulated" : "in threads");
    std::atomic<int> alive{0};
    auto token = std::make_shared<int>();
    const std::weak_ptr<int> held = token;
    const int threads = ThreadsHere();
    const absl::Time start = absl::Now();
    absl::Status status;
    {
      const Program program = ProgramOf(plan, alive, std::move(token));
      status = simulated ? Simulate(program, options, {seed}).status
                         : Spawn(program, options);
    }
    EXPECT_LT(absl::Now() - start, kDeadline);
    // Ranks, threads and actors, which hold the program, have ended.
    EXPECT_EQ(alive, 0);
    ExpectThreads(threads);
    EXPECT_TRUE(held.expired());
    if (plan.mistake == Mistake::kNone) {
      EXPECT_TRUE(status.ok()) << status;
    } else {
      ExpectTheMistakeNamed(plan, status);
    }
  }
}

// TROUPE_SIM_TIMES=n takes n times as many (tests/base/seeds.h).
TEST(MistakesTest, EachEndsWithAStatusThatNamesIt) {
  for (std::uint64_t seed : Seeds(104)) {
    const auto mistake = static_cast<Mistake>(1 + seed % kMistakes);
    const Plan plan = Planner(seed, mistake).Make();
    SCOPED_TRACE(absl::StrCat("seed ", seed, ": ", plan.ToString()));
    RunBoth(plan, seed);
    if (HasFailure()) FAIL() << ReplayCommand(seed);
  }
}

// The same programs without mistakes are right.
TEST(MistakesTest, ProgramsWithoutMistakesEndWell) {
  for (std::uint64_t seed : Seeds(30)) {
    const Plan plan = Planner(seed, Mistake::kNone).Make();
    SCOPED_TRACE(absl::StrCat("seed ", seed, ": ", plan.ToString()));
    RunBoth(plan, seed);
    if (HasFailure()) FAIL() << ReplayCommand(seed);
  }
}

}  // namespace
}  // namespace troupe
