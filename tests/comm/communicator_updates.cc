// Tests reduce_update: the replicas of all ranks get the bits that an
// all-reduce and an update on every rank would give, however the ranks are
// driven.

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "tests/comm/communicator_suite.h"
#include "tests/comm/reduction_test_data.h"

namespace troupe::comm {
namespace {

using nn::DType;
using nn::Tensor;
using testing::HasSubstr;

constexpr std::uint64_t kSeed = 7;

// Momentum SGD: state = state / 2 + sum, value -= state / 4. The dtype of the
// state differs from that of the value.
class Momentum : public ReplicaUpdate {
 public:
  Momentum(std::int64_t count, nn::Allocator& allocator)
      : replicas_{Tensor::Zeros({count}, DType::kF32, allocator),
                  Tensor::Zeros({count}, DType::kF64, allocator)} {}

  absl::Span<const Tensor> replicas() const override { return replicas_; }

  absl::Status Apply(std::int64_t begin, const Tensor& sum) override {
    if (!error.ok()) return error;
    float* const value = replicas_[0].data<float>() + begin;
    double* const state = replicas_[1].data<double>() + begin;
    const float* const addend = sum.data<float>();
    const std::int64_t count = sum.numel();
    for (std::int64_t i = 0; i < count; ++i) {
      state[i] = state[i] / 2 + addend[i];
      value[i] -= static_cast<float>(state[i] / 4);
    }
    updated += sum.numel();
    return absl::OkStatus();
  }

  absl::Status error;
  std::int64_t updated = 0;  // elements that this rank has updated

 private:
  std::vector<Tensor> replicas_;
};

using Updates = std::vector<std::shared_ptr<Momentum>>;

Updates MakeUpdates(int size, std::int64_t count, nn::Allocator& allocator) {
  Updates updates;
  for (int r = 0; r < size; ++r) {
    updates.push_back(std::make_shared<Momentum>(count, allocator));
  }
  return updates;
}

// Returns the gradients of all ranks; they differ between steps.
std::vector<Tensor> Gradients(int size, std::int64_t count, int step,
                              nn::Allocator& allocator) {
  std::vector<Tensor> ranges;
  for (int r = 0; r < size; ++r) {
    ranges.push_back(TestRange(DType::kF32, count, kSeed + step, r, allocator));
  }
  return ranges;
}

// Expects that after two steps every rank's replicas equal those of a single
// process that applies the whole reduced gradients, and that the gradients are
// unchanged.
void ExpectTwoSteps(const Updates& updates,
                    const std::vector<std::vector<Tensor>>& gradients,
                    int processes, nn::Allocator& allocator) {
  const int size = static_cast<int>(updates.size());
  const std::int64_t count = gradients[0][0].numel();
  Momentum expected(count, allocator);
  std::int64_t updated = 0;
  for (int step = 0; step < 2; ++step) {
    const std::vector<Tensor> fresh = Gradients(size, count, step, allocator);
    ASSERT_TRUE(
        expected.Apply(0, ExpectedResult(ReduceOp::kSum, fresh, allocator))
            .ok());
    for (int r = 0; r < size; ++r) {
      EXPECT_TRUE(nn::BitEqual(gradients[step][r], fresh[r]));
    }
  }
  for (int r = 0; r < size; ++r) {
    for (int i : {0, 1}) {
      EXPECT_TRUE(
          nn::BitEqual(updates[r]->replicas()[i], expected.replicas()[i]))
          << "replica " << i << " of rank " << r << ", " << size << " ranks, "
          << count << " elements";
    }
    updated += updates[r]->updated;
  }
  EXPECT_EQ(updated, 2 * count * processes)
      << "each element on one rank of each process";
}

TEST_P(CommunicatorSuite, UpdatesReplicasStepByStep) {
  for (int size : {1, 2, 3, 4, 8, 9}) {
    const Ranks ranks = Make(size);
    for (std::int64_t count : {0, 1, 3, 1000, 30011}) {
      const Updates updates = MakeUpdates(size, count, allocator_);
      std::vector<std::vector<Tensor>> gradients;
      for (int step = 0; step < 2; ++step) {
        gradients.push_back(Gradients(size, count, step, allocator_));
        std::vector<Event> events;
        for (int r = 0; r < size; ++r) {
          events.push_back(*ranks[r]->Start(
              ReduceUpdate(ReduceOp::kSum, gradients[step][r], updates[r]),
              Event()));
        }
        Step(ranks, /*seed=*/count + step, events);
      }
      ExpectTwoSteps(updates, gradients, Processes(size), allocator_);
    }
  }
}

TEST_P(CommunicatorSuite, UpdatesReplicasInThreads) {
  for (int size : {1, 2, 3, 8}) {
    const Ranks ranks = Make(size);
    for (std::int64_t count : {5, 1000, 300007}) {
      const Updates updates = MakeUpdates(size, count, allocator_);
      std::vector<std::vector<Tensor>> gradients;
      for (int step = 0; step < 2; ++step) {
        gradients.push_back(Gradients(size, count, step, allocator_));
      }
      InThreads(ranks, [&](Communicator& comm, int rank) {
        for (int step = 0; step < 2; ++step) {
          const Collective collective = ReduceUpdate(
              ReduceOp::kSum, gradients[step][rank], updates[rank]);
          if ((rank + step) % 2 == 0) {
            EXPECT_TRUE(comm.RunInline(collective, kTimeout).ok());
          } else {
            const absl::StatusOr<Event> event = comm.Start(collective, Event());
            EXPECT_TRUE(event.ok() && Await(comm, *event).ok());
          }
        }
      });
      ExpectTwoSteps(updates, gradients, Processes(size), allocator_);
    }
  }
}

TEST_P(CommunicatorSuite, AnUpdateThatFailsAbortsTheGroup) {
  const Ranks ranks = Make(2);
  const Updates updates = MakeUpdates(2, 1000, allocator_);
  for (const auto& update : updates) {
    update->error = absl::DataLossError("the optimizer lost its state");
  }
  std::vector<Event> events;
  for (int r = 0; r < 2; ++r) {
    events.push_back(*ranks[r]->Start(
        ReduceUpdate(ReduceOp::kSum, Floats(1, r, 1000), updates[r]), Event()));
  }
  Step(ranks, /*seed=*/1, events);
  for (const Event& event : events) {
    EXPECT_EQ(event.status(),
              absl::DataLossError("the optimizer lost its state"));
  }
  EXPECT_FALSE(ranks[0]->Start(Barrier(), Event()).ok());
}

TEST_P(CommunicatorSuite, AnUpdateThatFailsInlineEndsAllRanks) {
  const Ranks ranks = Make(3);
  const Updates updates = MakeUpdates(3, 30011, allocator_);
  // One rank's optimizer fails; the others may be anywhere in the range.
  updates[1]->error = absl::DataLossError("the optimizer lost its state");
  InThreads(ranks, [&](Communicator& comm, int rank) {
    absl::Status status;
    for (int step = 0; step < 1000 && status.ok(); ++step) {
      status = comm.RunInline(
          ReduceUpdate(ReduceOp::kSum,
                       TestRange(DType::kF32, 30011, kSeed, rank, allocator_),
                       updates[rank]),
          kTimeout);
    }
    EXPECT_EQ(status, absl::DataLossError("the optimizer lost its state"));
  });
}

TEST_P(CommunicatorSuite, AReduceIsNoReduceUpdate) {
  const Ranks ranks = Make(2);
  const Updates updates = MakeUpdates(1, 4, allocator_);
  const Event one = *ranks[0]->Start(
      ReduceUpdate(ReduceOp::kSum, Floats(1, 0), updates[0]), Event());
  const absl::StatusOr<Event> other =
      ranks[1]->Start(AllReduce(ReduceOp::kSum, Floats(1, 1)), Event());
  ASSERT_TRUE(other.ok());
  Step(ranks, /*seed=*/1, {one, *other});
  EXPECT_THAT(std::string(one.status().message()),
              HasSubstr("rank 0 started reduce_update(sum, f32 x 4), rank 1 "
                        "started all_reduce(sum, f32 x 4)"));
}

// Replicas that do not fit the range are refused, and nothing is started.
TEST_P(CommunicatorSuite, RefusesReplicasThatDoNotFit) {
  const Ranks ranks = Make(2);
  const auto error = [&](std::shared_ptr<ReplicaUpdate> update) {
    const auto event = ranks[0]->Start(
        ReduceUpdate(ReduceOp::kSum, Floats(1, 0), update), Event());
    EXPECT_EQ(event.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(event.status().message());
  };
  EXPECT_EQ(error(nullptr), "reduce_update(sum, f32 x 4): there is no update");
  EXPECT_EQ(error(std::make_shared<Momentum>(5, allocator_)),
            "reduce_update(sum, f32 x 4): a replica has 5 elements");
}

// An update with any given replicas, so that their dtypes or number may differ
// between ranks.
class OtherReplicas : public ReplicaUpdate {
 public:
  explicit OtherReplicas(std::vector<Tensor> replicas)
      : replicas_(std::move(replicas)) {}
  absl::Span<const Tensor> replicas() const override { return replicas_; }
  absl::Status Apply(std::int64_t, const Tensor&) override {
    applied = true;
    return absl::OkStatus();
  }

  bool applied = false;

 private:
  std::vector<Tensor> replicas_;
};

TEST_P(CommunicatorSuite, RanksWithOtherReplicasAreNamedBeforeAnyUpdate) {
  const Tensor narrow = Tensor::Zeros({4}, DType::kF32, allocator_);
  for (const auto& [replicas, text] :
       std::vector<std::pair<std::vector<Tensor>, std::string>>{
           {{}, "no replicas"}, {{narrow, narrow}, "f32 and f32 replicas"}}) {
    const Ranks ranks = Make(2);
    const auto usual = std::make_shared<Momentum>(4, allocator_);
    const auto unusual = std::make_shared<OtherReplicas>(replicas);
    const Event one = *ranks[0]->Start(
        ReduceUpdate(ReduceOp::kSum, Floats(1, 0), usual), Event());
    const Event other = *ranks[1]->Start(
        ReduceUpdate(ReduceOp::kSum, Floats(1, 1), unusual), Event());
    Step(ranks, /*seed=*/1, {one, other});
    EXPECT_THAT(std::string(one.status().message()),
                testing::AllOf(HasSubstr("updates f32 and f64 replicas"),
                               HasSubstr("updates " + text)));
    EXPECT_EQ(one.status(), other.status());
    EXPECT_EQ(usual->updated, 0);
    EXPECT_FALSE(unusual->applied);
  }
}

class ThrowingUpdate : public Momentum {
 public:
  using Momentum::Momentum;
  absl::Status Apply(std::int64_t, const Tensor&) override {
    throw std::runtime_error("a user's optimizer threw");
  }
};

TEST_P(CommunicatorSuite, AnUpdateThatThrowsAbortsTheGroup) {
  const Ranks ranks = Make(2);
  const std::shared_ptr<Momentum> updates[] = {
      std::make_shared<Momentum>(30011, allocator_),
      std::make_shared<ThrowingUpdate>(30011, allocator_)};
  InThreads(ranks, [&](Communicator& comm, int rank) {
    absl::Status status;
    for (int step = 0; step < 1000 && status.ok(); ++step) {
      status = comm.RunInline(
          ReduceUpdate(ReduceOp::kSum, Floats(1, rank, 30011), updates[rank]),
          kTimeout);
    }
    EXPECT_EQ(status, absl::InternalError("a user's optimizer threw"));
  });
}

// Updates that succeed in the same call of Progress() must not hide an earlier
// one that failed.
TEST_P(CommunicatorSuite, AnUpdateThatFailsIsNotLostAmongOthers) {
  for (std::uint64_t seed : {1, 2, 3, 4, 5}) {
    const Ranks ranks = Make(2);
    const Updates failing = MakeUpdates(2, 4, allocator_);
    const Updates sound = MakeUpdates(2, 4, allocator_);
    for (const auto& update : failing) {
      update->error = absl::DataLossError("the state is lost");
    }
    std::vector<Event> events;
    for (const Updates* updates : {&failing, &sound}) {
      for (int r = 0; r < 2; ++r) {
        const absl::StatusOr<Event> started = ranks[r]->Start(
            ReduceUpdate(ReduceOp::kSum, Floats(1, r), (*updates)[r]), Event());
        // The first one may have failed by then, in another thread.
        if (started.ok()) events.push_back(*started);
      }
    }
    Step(ranks, seed, events);
    EXPECT_EQ(events[0].status(), absl::DataLossError("the state is lost"));
  }
}

}  // namespace
}  // namespace troupe::comm
