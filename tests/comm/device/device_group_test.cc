// Tests a device group on fake devices whose work runs on the host. The queues
// of a real device are tested in tests/nn/kernels/cuda, both together in
// cuda_job_test.

#include "comm/device/device_group.h"

#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "comm/device/device_work.h"
#include "comm/local/local_group.h"
#include "comm/reduction/reduction_tree.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace troupe::comm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Device work that the host does when Run() is called: like a real device, it
// lets the host run ahead.
class LateWork final : public DeviceWork {
 public:
  void Wait(const base::Event& event) override {
    Push([event] { EXPECT_TRUE(event.ready()) << "it was not waited for"; });
  }
  absl::Status Reduce(ReduceOp op, std::vector<nn::Tensor> sources,
                      std::vector<nn::Tensor> destinations) override {
    if (op == ReduceOp::kProduct) return absl::UnimplementedError("no product");
    Push([=] {
      std::vector<const void*> from;
      std::vector<void*> to;
      for (const nn::Tensor& tensor : sources) from.push_back(tensor.raw());
      for (const nn::Tensor& tensor : destinations) to.push_back(tensor.raw());
      ReduceTree({op, sources[0].dtype(), static_cast<int>(sources.size())},
                 from, to, sources[0].numel());
    });
    return absl::OkStatus();
  }
  void Copy(const nn::Tensor& from, const nn::Tensor& to) override {
    Push([=] { std::memcpy(to.raw(), from.raw(), from.bytes()); });
  }
  base::Event Record() override {
    const base::Event done = base::Event::Make();
    Push([done] { done.Complete(absl::OkStatus()); });
    return done;
  }

  void Run() {
    while (!work_.empty()) {
      const std::function<void()> next = std::move(work_.front());
      work_.pop_front();
      next();
    }
  }
  bool idle() const { return work_.empty(); }

 private:
  void Push(std::function<void()> work) { work_.push_back(std::move(work)); }
  std::deque<std::function<void()>> work_;
};

// A device group and a local group of the same size, to compare their results.
class Both {
 public:
  explicit Both(int size)
      : works(size),
        devices(MakeDeviceGroup({size})),
        hosts(MakeLocalGroup({size})) {
    for (int r = 0; r < size; ++r) {
      EXPECT_TRUE(devices[r]->UseDevice(&works[r]));
      EXPECT_FALSE(hosts[r]->UseDevice(&works[r]));
    }
  }

  // Expects that both groups give the same bits. `make(rank, range, input)`
  // makes the collective.
  template <typename MakeCollective>
  void Expect(std::int64_t input_elems, std::int64_t range_elems,
              const MakeCollective& make) {
    const int size = static_cast<int>(works.size());
    std::vector<nn::Tensor> got, want, inputs;
    std::vector<Event> events;
    for (const bool on_device : {true, false}) {
      for (int r = 0; r < size; ++r) {
        const nn::Tensor input = Numbers(r, input_elems);
        const nn::Tensor range = Numbers(r + 100, range_elems);
        inputs.push_back(input);
        (on_device ? got : want).push_back(range);
        Communicator& comm = *(on_device ? devices : hosts)[r];
        const auto event = comm.Start(make(r, input, range), Event());
        ASSERT_TRUE(event.ok()) << event.status();
        events.push_back(*event);
      }
    }
    for (LateWork& work : works) work.Run();
    while (hosts[0]->Progress()) {
    }
    for (const Event& event : events) {
      ASSERT_TRUE(event.ready());
      EXPECT_TRUE(event.status().ok()) << event.status();
    }
    for (int r = 0; r < size; ++r) {
      EXPECT_TRUE(BitEqual(got[r], want[r])) << "rank " << r << " of " << size;
    }
  }

  nn::Tensor Numbers(int salt, std::int64_t elems) {
    nn::Tensor tensor = nn::Tensor::Empty({elems}, nn::DType::kF32, allocator);
    for (std::int64_t i = 0; i < elems; ++i) {
      tensor.data<float>()[i] = 0.1f * static_cast<float>(salt * 7 + i);
    }
    return tensor;
  }

  nn::CachingAllocator allocator;
  std::vector<LateWork> works;
  Group devices, hosts;
};

TEST(DeviceGroupTest, HasTheBitsOfALocalGroup) {
  constexpr std::int64_t kCount = 37;
  using nn::Tensor;
  for (int n : {1, 2, 3, 5, 8}) {
    Both both(n);
    for (ReduceOp op : {ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kMax}) {
      both.Expect(kCount, kCount, [&](int, const Tensor&, const Tensor& to) {
        return AllReduce(op, to);
      });
    }
    both.Expect(kCount, kCount, [&](int, const Tensor&, const Tensor& to) {
      return Broadcast(n - 1, to);
    });
    both.Expect(kCount, kCount, [&](int, const Tensor& in, const Tensor& to) {
      return Reduce(ReduceOp::kSum, n / 2, in, to);
    });
    both.Expect(kCount, n * kCount,
                [&](int, const Tensor& in, const Tensor& to) {
                  return AllGather(in, to);
                });
    both.Expect(n * kCount, kCount,
                [&](int, const Tensor& in, const Tensor& to) {
                  return ReduceScatter(ReduceOp::kSum, in, to);
                });
    both.Expect(n * kCount, n * kCount,
                [&](int, const Tensor& in, const Tensor& to) {
                  return AllToAll(in, to);
                });
    both.Expect(0, 0,
                [&](int, const Tensor&, const Tensor&) { return Barrier(); });
  }
}

TEST(DeviceGroupTest, TheLastToComeGivesItsDeviceTheWork) {
  Both both(3);
  const Event ready[3] = {Event::Make(), Event::Make(), Event()};
  Event done[3];
  for (int r : {1, 2, 0}) {
    for (const LateWork& work : both.works) EXPECT_TRUE(work.idle());
    done[r] = *both.devices[r]->Start(
        AllReduce(ReduceOp::kSum, both.Numbers(r, 4)), ready[r]);
  }
  EXPECT_FALSE(both.works[0].idle());
  EXPECT_TRUE(both.works[1].idle());
  EXPECT_TRUE(both.works[2].idle());
  for (const Event& event : ready) event.Complete(absl::OkStatus());
  EXPECT_FALSE(done[2].ready());
  both.works[0].Run();
  for (const Event& event : done) EXPECT_TRUE(event.ready());
}

TEST(DeviceGroupTest, SaysWhomARankWaitsFor) {
  Both both(3);
  const nn::Tensor range = both.Numbers(0, 4);
  ASSERT_TRUE(both.devices[1]->Start(Barrier(), Event()).ok());
  ASSERT_TRUE(
      both.devices[1]->Start(AllReduce(ReduceOp::kSum, range), Event()).ok());
  ASSERT_TRUE(both.devices[2]->Start(Barrier(), Event()).ok());
  const std::vector<Waiting> waits = both.devices[1]->Waits();
  ASSERT_EQ(waits.size(), 2u);
  EXPECT_EQ(waits[0].what, "barrier(), collective 0 of the group");
  EXPECT_THAT(waits[0].ranks, ElementsAre(0));
  EXPECT_EQ(waits[1].what,
            "all_reduce(sum, f32 x 4), collective 1 of the group");
  EXPECT_THAT(waits[1].ranks, ElementsAre(0, 2));
  both.devices[0]->Abort(absl::CancelledError("enough"));
  EXPECT_EQ(both.devices[1]->Waits().size(), 2u);
}

TEST(DeviceGroupTest, HandsMessagesOver) {
  Both both(2);
  const nn::Tensor sent = both.Numbers(0, 4), into = both.Numbers(1, 8);
  const Event ready = Event::Make();
  const Event done = *both.devices[0]->StartSend(1, /*tag=*/7, sent, ready);
  Arrival arrival;
  const Event come = *both.devices[1]->StartRecv(0, /*tag=*/7, into, &arrival);
  EXPECT_FALSE(come.ready());
  ASSERT_EQ(both.devices[1]->Waits().size(), 1u);
  EXPECT_EQ(both.devices[1]->Waits()[0].what, "recv(from 0, tag 7, f32 x 8)");
  ready.Complete(absl::OkStatus());
  EXPECT_TRUE(come.ready());
  EXPECT_TRUE(done.ready());
  EXPECT_EQ(arrival.data.device_data(), sent.device_data());
  EXPECT_EQ(arrival.count, 4);
  // One that does not fit ends the group, for collectives as well.
  const Event longer = *both.devices[0]->StartSend(1, /*tag=*/7, into, Event());
  const Event unfit = *both.devices[1]->StartRecv(0, /*tag=*/7, sent, nullptr);
  EXPECT_EQ(unfit.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(longer.status(), unfit.status());
  EXPECT_EQ(both.devices[0]->Start(Barrier(), Event()).status(),
            unfit.status());
}

TEST(DeviceGroupTest, RanksThatDifferEndTheGroup) {
  Both both(2);
  const nn::Tensor range = both.Numbers(0, 4);
  const Event first =
      *both.devices[0]->Start(AllReduce(ReduceOp::kSum, range), Event());
  const absl::Status status =
      both.devices[1]
          ->Start(AllReduce(ReduceOp::kMax, range), Event())
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "the ranks differ in collective 0 of the group: rank 0 started "
            "all_reduce(sum, f32 x 4), rank 1 started all_reduce(max, f32 x "
            "4)");
  EXPECT_EQ(first.status(), status);
  EXPECT_EQ(both.devices[0]->Start(Barrier(), Event()).status(), status);
}

TEST(DeviceGroupTest, WhatADeviceLacksEndsTheGroup) {
  Both both(2);
  const nn::Tensor range = both.Numbers(0, 4);
  const Event first =
      *both.devices[0]->Start(AllReduce(ReduceOp::kProduct, range), Event());
  EXPECT_EQ(both.devices[1]
                ->Start(AllReduce(ReduceOp::kProduct, range), Event())
                .status()
                .message(),
            "no product");
  EXPECT_EQ(first.status().message(), "no product");
}

TEST(DeviceGroupTest, ARankThatLeavesIsMissed) {
  Both both(2);
  ASSERT_TRUE(both.devices[1]->Start(Barrier(), Event()).ok());
  both.devices[0] = nullptr;
  const absl::Status status =
      both.devices[1]->Start(Barrier(), Event()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("rank 0 left"));

  Both later(2);
  later.devices[0] = nullptr;
  EXPECT_THAT(
      std::string(
          later.devices[1]->Start(Barrier(), Event()).status().message()),
      HasSubstr("rank 0 left the group, and rank 1 needs it for"));
}

TEST(DeviceGroupTest, ARankIsAheadOfItsPeersByAFew) {
  LocalGroupOptions options;
  options.size = 2;
  options.in_flight_max = 4;
  Group group = MakeDeviceGroup(options);
  LateWork work;
  group[0]->UseDevice(&work);
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(group[0]->Start(Barrier(), Event()).ok());
  }
  EXPECT_EQ(group[0]->Start(Barrier(), Event()).status().code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace troupe::comm
