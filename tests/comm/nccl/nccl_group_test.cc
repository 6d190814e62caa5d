// Tests collectives by emulated NCCL, in all orders that streams, events and
// calls in progress permit.

#include "comm/nccl/nccl_group.h"

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "base/cuda/emulated/emulated_nccl.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/seeds.h"
#include "tests/comm/nccl/nccl_ranks.h"

namespace troupe::comm {
namespace {

using nn::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;

// Runs one collective on all ranks and returns the outputs. `make(rank, input,
// range)` makes it; inputs have `input_elems` and outputs `range_elems`
// numbers.
template <typename T, typename MakeCollective>
std::vector<std::vector<T>> Outputs(NcclRanks& ranks, int input_elems,
                                    int range_elems,
                                    const MakeCollective& make) {
  const int size = static_cast<int>(ranks.devices.size());
  std::vector<Tensor> inputs, ranges;
  std::vector<Event> done;
  for (int r = 0; r < size; ++r) {
    std::vector<T> input, range(range_elems, T(1 + r));
    for (int i = 0; i < input_elems; ++i) input.push_back(T(10 * r + i));
    inputs.push_back(ranks.On(r, input));
    ranges.push_back(ranks.On(r, range));
    const auto event = ranks.group[r]->Start(make(r, inputs[r], ranges[r]),
                                             /*after=*/ranks.Ready(r));
    EXPECT_TRUE(event.ok()) << event.status();
    done.push_back(event.ok() ? *event : Event());
  }
  std::vector<std::vector<T>> outputs;
  for (int r = 0; r < size; ++r) {
    outputs.push_back(ranks.Values<T>(r, ranges[r], done[r]));
  }
  return outputs;
}

template <typename T>
void ExpectReductions(NcclRanks& ranks) {
  const int n = static_cast<int>(ranks.devices.size());
  const T sum = T(n * (n + 1) / 2);
  const auto in_place = [&](ReduceOp op) {
    return Outputs<T>(ranks, 0, 3, [&](int, const Tensor&, const Tensor& to) {
      return AllReduce(op, to);
    });
  };
  for (const auto& got : in_place(ReduceOp::kSum)) {
    EXPECT_THAT(got, ElementsAre(sum, sum, sum));
  }
  for (const auto& got : in_place(ReduceOp::kMax)) {
    EXPECT_THAT(got, ElementsAre(T(n), T(n), T(n)));
  }
  for (const auto& got : in_place(ReduceOp::kMin)) {
    EXPECT_THAT(got, ElementsAre(T(1), T(1), T(1)));
  }
  if constexpr (std::is_floating_point_v<T>) {
    for (const auto& got : in_place(ReduceOp::kAvg)) {
      for (const T value : got) EXPECT_NEAR(value, (n + 1) / 2.0, 1e-6);
    }
  }
}

TEST(NcclGroupTest, ReducesEveryType) {
  for (std::uint64_t seed : Seeds(20)) {
    SCOPED_TRACE(ReplayCommand(seed));
    const int size = 1 + static_cast<int>(seed % 4);
    NcclRanks ranks(seed, size);
    ranks.Join();
    ExpectReductions<float>(ranks);
    ExpectReductions<double>(ranks);
    ExpectReductions<std::int32_t>(ranks);
    ExpectReductions<std::int64_t>(ranks);
    ExpectReductions<std::uint8_t>(ranks);
  }
}

// Expects the results of all kinds that move data. Rank r's input is 10 r,
// 10 r + 1, ...
void ExpectMoves(NcclRanks& ranks) {
  using Numbers = std::vector<std::vector<float>>;
  const int n = static_cast<int>(ranks.devices.size());
  const int root = n - 1;
  Numbers got =
      Outputs<float>(ranks, 2, 2, [&](int, const Tensor& in, const Tensor& to) {
        Collective broadcast = Broadcast(root, to);
        broadcast.input = in;
        return broadcast;
      });
  for (int r = 0; r < n; ++r) {
    EXPECT_THAT(got[r], ElementsAre(10 * root, 10 * root + 1));
  }
  got =
      Outputs<float>(ranks, 2, 2, [&](int, const Tensor& in, const Tensor& to) {
        return Reduce(ReduceOp::kSum, root, in, to);
      });
  EXPECT_THAT(got[root], ElementsAre(5 * n * (n - 1), 5 * n * (n - 1) + n));
  got =
      Outputs<float>(ranks, 1, n, [&](int, const Tensor& in, const Tensor& to) {
        return AllGather(in, to);
      });
  Numbers gathered =
      Outputs<float>(ranks, 1, n, [&](int, const Tensor& in, const Tensor& to) {
        return Gather(root, in, to);
      });
  for (int r = 0; r < n; ++r) {
    for (int from = 0; from < n; ++from) {
      EXPECT_EQ(got[r][from], 10 * from);
      EXPECT_EQ(gathered[root][from], 10 * from);
    }
  }
  got =
      Outputs<float>(ranks, n, 1, [&](int, const Tensor& in, const Tensor& to) {
        return ReduceScatter(ReduceOp::kSum, in, to);
      });
  Numbers scattered =
      Outputs<float>(ranks, n, 1, [&](int, const Tensor& in, const Tensor& to) {
        return Scatter(root, in, to);
      });
  Numbers exchanged =
      Outputs<float>(ranks, n, n, [&](int, const Tensor& in, const Tensor& to) {
        return AllToAll(in, to);
      });
  for (int r = 0; r < n; ++r) {
    EXPECT_THAT(got[r], ElementsAre(5 * n * (n - 1) + n * r));
    EXPECT_THAT(scattered[r], ElementsAre(10 * root + r));
    for (int from = 0; from < n; ++from) {
      EXPECT_EQ(exchanged[r][from], 10 * from + r);
    }
  }
}

TEST(NcclGroupTest, MovesWhatEachKindMoves) {
  for (std::uint64_t seed : Seeds(20)) {
    SCOPED_TRACE(ReplayCommand(seed));
    const int size = 1 + static_cast<int>(seed % 4);
    NcclRanks ranks(seed, size);
    ranks.Join();
    ExpectMoves(ranks);
  }
}

TEST(NcclGroupTest, ExchangesUnequalParts) {
  for (std::uint64_t seed : Seeds(20)) {
    SCOPED_TRACE(ReplayCommand(seed));
    NcclRanks ranks(seed, 2);
    ranks.Join();
    // Rank 0 sends one element to itself and two to rank 1; rank 1 sends one
    // element to itself.
    const std::vector<std::int64_t> sends[] = {{1, 2}, {0, 1}};
    const std::vector<std::int64_t> receives[] = {{1, 0}, {2, 1}};
    std::vector<Tensor> in = {ranks.On<float>(0, {1, 2, 3}),
                              ranks.On<float>(1, {4})};
    std::vector<Tensor> to = {ranks.On<float>(0, {0}),
                              ranks.On<float>(1, {0, 0, 0})};
    Event done[2];
    for (int r = 0; r < 2; ++r) {
      done[r] = *ranks.group[r]->Start(
          AllToAll(in[r], sends[r], to[r], receives[r]), ranks.Ready(r));
    }
    EXPECT_THAT(ranks.Values<float>(0, to[0], done[0]), ElementsAre(1));
    EXPECT_THAT(ranks.Values<float>(1, to[1], done[1]), ElementsAre(2, 3, 4));
  }
}

TEST(NcclGroupTest, ProcessesCompareWhatTheyStart) {
  for (std::uint64_t seed : Seeds(20)) {
    SCOPED_TRACE(ReplayCommand(seed));
    const int size = 2 + static_cast<int>(seed % 3);
    NcclRanks ranks(seed, size);
    ranks.Join(ranks.OfProcesses(ranks.options()));
    ExpectReductions<float>(ranks);
    ExpectMoves(ranks);
    // Only the first comparison allocates host memory.
    nn::Allocator& host = ranks.devices[0]->host_allocator();
    const std::int64_t taken = host.stats().system_allocations;
    ExpectReductions<float>(ranks);
    EXPECT_EQ(host.stats().system_allocations, taken);
  }
}

// A captured graph contains only the collective: ranks compare what they start
// in the steps before the capture.
TEST(NcclGroupTest, RecordsWithoutAComparison) {
  for (std::uint64_t seed : Seeds(20)) {
    SCOPED_TRACE(ReplayCommand(seed));
    NcclRanks ranks(seed, 2);
    ranks.Join(ranks.OfProcesses(ranks.options()));
    ExpectReductions<float>(ranks);
    std::vector<Tensor> values;
    std::vector<std::unique_ptr<nn::DeviceGraph>> graphs;
    for (int r = 0; r < 2; ++r) {
      nn::cuda::CudaDevice& device = *ranks.devices[r];
      values.push_back(ranks.On<float>(r, {1.f + r}));
      const std::int64_t asked = device.host_allocator().stats().allocations;
      ASSERT_TRUE(device.BeginCapture().ok());
      const auto done = ranks.group[r]->Start(
          AllReduce(ReduceOp::kSum, values[r]), ranks.Ready(r));
      ASSERT_TRUE(done.ok()) << done.status();
      device.Wait(nn::Queue::kCompute, *done);
      auto graph = device.EndCapture();
      ASSERT_TRUE(graph.ok()) << graph.status();
      graphs.push_back(*std::move(graph));
      EXPECT_EQ(device.host_allocator().stats().allocations, asked);
    }
    for (int launch = 0; launch < 2; ++launch) {
      for (const auto& graph : graphs) ASSERT_TRUE(graph->Launch().ok());
    }
    for (int r = 0; r < 2; ++r) {
      EXPECT_THAT(ranks.Values<float>(r, values[r], Event()), ElementsAre(6));
    }
    graphs.clear();
  }
}

TEST(NcclGroupTest, RegistersRanges) {
  for (std::uint64_t seed : Seeds(20)) {
    SCOPED_TRACE(ReplayCommand(seed));
    NcclRanks ranks(seed, 2);
    ranks.Join();
    std::vector<Tensor> ranges;
    for (int r = 0; r < 2; ++r) {
      ranges.push_back(ranks.On<float>(r, {1.f + r, 2}));
      ranks.group[r]->UseRanges({ranges[r], ranks.On<float>(r, {3})});
    }
    std::vector<Event> done;
    for (int r = 0; r < 2; ++r) {
      done.push_back(*ranks.group[r]->Start(
          AllReduce(ReduceOp::kSum, ranges[r].FlatView(0, {1})),
          ranks.Ready(r)));
    }
    EXPECT_THAT(ranks.Values<float>(0, ranges[0], done[0]), ElementsAre(3, 2));
    EXPECT_TRUE(ranks.Await(done).ok());
    EXPECT_EQ(emulated_cuda::RegisteredRanges().now, 4u);
    ranks.group[0]->UseRanges({});
    EXPECT_EQ(emulated_cuda::RegisteredRanges().now, 2u);
    // Destroying a rank releases its remaining registrations.
    ranks.group.clear();
    EXPECT_EQ(emulated_cuda::RegisteredRanges().now, 0u);
    EXPECT_EQ(emulated_cuda::RegisteredRanges().ever, 4u);
  }
}

// A collective waits for the compute queue, and the compute queue for it, over
// several steps in the same memory: a missing dependency shows in a sum.
TEST(NcclGroupTest, StandsBetweenGradientsAndTheirReaders) {
  for (std::uint64_t seed : Seeds(300)) {
    SCOPED_TRACE(ReplayCommand(seed));
    const int size = 2 + static_cast<int>(seed % 3);
    NcclRanks ranks(seed, size);
    ranks.Join();
    std::vector<Tensor> gradients, sums;
    for (int r = 0; r < size; ++r) {
      gradients.push_back(ranks.On<float>(r, {float(r), 1}));
      sums.push_back(ranks.On<float>(r, {0, 0}));
    }
    std::vector<Event> done(size);
    constexpr int kSteps = 3;
    for (int step = 0; step < kSteps; ++step) {
      for (int r = 0; r < size; ++r) {
        done[r] = *ranks.group[r]->Start(
            AllReduce(ReduceOp::kSum, gradients[r]), ranks.Ready(r));
      }
      for (int r = 0; r < size; ++r) {
        nn::cuda::CudaDevice& device = *ranks.devices[r];
        device.Wait(nn::Queue::kCompute, done[r]);
        ASSERT_TRUE(device
                        .Reduce(nn::Queue::kCompute, {nn::ReduceOp::kSum,
                                                      {gradients[r], sums[r]},
                                                      {sums[r]}})
                        .ok());
      }
    }
    // Step k gives size^k times the first sum.
    float first = 0, second = 0;
    for (int step = 0; step < kSteps; ++step) {
      const float scale = step == 0 ? 1 : step == 1 ? size : size * size;
      first += scale * float(size * (size - 1) / 2);
      second += scale * float(size);
    }
    for (int r = 0; r < size; ++r) {
      EXPECT_THAT(ranks.Values<float>(r, sums[r], Event()),
                  ElementsAre(first, second));
    }
  }
}

TEST(NcclGroupTest, StartsSeveralTogether) {
  for (std::uint64_t seed : Seeds(50)) {
    SCOPED_TRACE(ReplayCommand(seed));
    NcclRanks ranks(seed, 2);
    ranks.Join();
    std::vector<Tensor> a, b;
    std::vector<Event> done;
    for (int r = 0; r < 2; ++r) {
      a.push_back(ranks.On<float>(r, {1.f + r}));
      b.push_back(ranks.On<double>(r, {4, 5.0 * r}));
      const auto event =
          StartCoalesced(*ranks.group[r],
                         {AllReduce(ReduceOp::kSum, a[r]),
                          AllReduce(ReduceOp::kMax, b[r]), Barrier()},
                         ranks.Ready(r));
      ASSERT_TRUE(event.ok()) << event.status();
      done.push_back(*event);
    }
    for (int r = 0; r < 2; ++r) {
      EXPECT_THAT(ranks.Values<float>(r, a[r], done[r]), ElementsAre(3));
      EXPECT_THAT(ranks.Values<double>(r, b[r], done[r]), ElementsAre(4, 5));
    }
  }
}

// Groups of some ranks share a queue with the group of all, as in a mesh.
TEST(NcclGroupTest, GroupsShareAQueue) {
  for (std::uint64_t seed : Seeds(50)) {
    SCOPED_TRACE(ReplayCommand(seed));
    NcclRanks ranks(seed, 4);
    ranks.Join();
    Group pairs[2];
    std::vector<Tensor> values;
    for (int p = 0; p < 2; ++p) {
      NcclGroupOptions options = ranks.options();
      options.name = "pair";
      options.ranks = {p, p + 2};
      options.local = {0, 1};
      pairs[p] = *OpenNcclGroup(options, ranks.store);
    }
    std::vector<Event> done;
    for (int r = 0; r < 4; ++r) {
      Communicator& pair = *pairs[r % 2][r / 2];
      pair.UseDevice(&ranks.works[r]);
      values.push_back(ranks.On<float>(r, {1.f + r}));
      Event reduced =
          *pair.Start(AllReduce(ReduceOp::kSum, values[r]), ranks.Ready(r));
      done.push_back(*ranks.group[r]->Start(
          AllReduce(ReduceOp::kProduct, values[r]), reduced));
    }
    for (int r = 0; r < 4; ++r) {
      EXPECT_THAT(ranks.Values<float>(r, values[r], done[r]),
                  ElementsAre(4 * 6 * 4 * 6));
    }
  }
}

TEST(NcclGroupTest, SaysWhatNcclLacks) {
  NcclRanks ranks(/*seed=*/1, /*size=*/1);
  ranks.Join();
  const Tensor range = ranks.On<float>(0, {1});
  Communicator& comm = *ranks.group[0];
  const auto message = [&](const Collective& collective) {
    const absl::Status status = comm.Start(collective, Event()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    return std::string(status.message());
  };
  EXPECT_THAT(message(AllReduce(ReduceOp::kBand, ranks.On<int>(0, {1}))),
              HasSubstr("NCCL does not reduce by band"));
  EXPECT_THAT(message(ReduceUpdate(ReduceOp::kSum, range, nullptr)),
              HasSubstr("devices reduce, and update afterwards"));
  EXPECT_EQ(comm.RunInline(Barrier(), absl::Seconds(1)).code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(comm.StartSend(0, 0, range, Event()).status().code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(comm.StartRecv(0, 0, range, nullptr).status().code(),
            absl::StatusCode::kUnimplemented);
  // None of these was started, and the group is unaffected.
  EXPECT_TRUE(ranks.Await({*comm.Start(Barrier(), Event())}).ok());
}

}  // namespace
}  // namespace troupe::comm
