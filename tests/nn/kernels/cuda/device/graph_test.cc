// Tests of graphs of a CUDA device, on the emulation: a launched graph gives
// the same bits as the eager step, in all orders that streams and events
// permit.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/kernels/cuda/cuda_kernels.h"
#include "nn/kernels/device_graph.h"
#include "nn/kernels/device_queues.h"
#include "nn/random/sample_draws.h"
#include "tests/base/seeds.h"
#include "tests/nn/kernels/cuda/device/emulated_device_fixture.h"

namespace troupe::nn::cuda {
namespace {

using testing::HasSubstr;

using Values = std::vector<float>;

Tensor There(Kernels& kernels, const Values& values) {
  return *CopyToDevice(kernels, Queue::kCopy, HostNumbers(values));
}

void Put(Kernels& kernels, const Values& values, const Tensor& to) {
  CopyBytes(kernels, Queue::kCompute, There(kernels, values), to);
}

Values Back(Kernels& kernels, const Tensor& tensor) {
  const Tensor host = *CopyToHost(kernels, Queue::kCompute, tensor);
  const absl::Status status =
      Synchronize(kernels, Record(kernels, Queue::kCompute));
  EXPECT_TRUE(status.ok()) << status;
  const absl::Span<float> span = host.span<float>();
  return Values(span.begin(), span.end());
}

Tensor Like(Kernels& kernels, const Tensor& tensor) {
  return Tensor::Empty(tensor.shape(), tensor.dtype(), kernels.allocator());
}

// A small training step: a product, a sum on the communication queue while
// kCompute does other work, and an update after both.
struct SmallStep {
  explicit SmallStep(Kernels& kernels)
      : kernels(kernels),
        x(There(kernels, {1, -2}).View({1, 2})),
        w(There(kernels, {1, 2, 3, 1}).View({2, 2})),
        b(There(kernels, {0.5f, 0.25f})),
        param(There(kernels, {1, 1})),
        momentum(There(kernels, {0, 0})),
        scalars(Tensor::Empty({kNumStepScalars}, DType::kF64,
                              kernels.allocator())) {}

  absl::Status SetScalars(double step, double lr) {
    StepScalars values;
    values.step = step;
    values.lr = lr;
    values.loss_count = 1;
    return kernels.SetStepScalars(values, scalars);
  }

  absl::Status Run() {
    Tensor y = Tensor::Empty({1, 2}, DType::kF32, kernels.allocator());
    absl::Status status = kernels.LinearForward(x, w, b, y);
    Wait(kernels, Queue::kComm, Record(kernels, Queue::kCompute));
    Tensor grad = Tensor::Empty({1, 2}, DType::kF32, kernels.allocator());
    // kComm may use the new memory, because it has waited for kCompute.
    status.Update(kernels.queues()->Reduce(Queue::kComm,
                                           {ReduceOp::kSum, {y, y}, {grad}}));
    const base::Event reduced = Record(kernels, Queue::kComm);
    Tensor beside = Like(kernels, y);
    status.Update(kernels.ReluForward(y, beside));
    Wait(kernels, Queue::kCompute, reduced);
    status.Update(kernels.Add(grad, beside, grad));
    SgdRule rule;
    rule.momentum = 0.5;
    Tensor flat = grad.View({2});
    status.Update(kernels.SgdUpdate(rule, scalars, flat, param, momentum));
    return status;
  }

  Kernels& kernels;
  Tensor x, w, b, param, momentum, scalars;
};

std::unique_ptr<DeviceGraph> Captured(
    Kernels& kernels, const std::function<absl::Status()>& work) {
  absl::Status status = kernels.queues()->BeginCapture();
  EXPECT_TRUE(status.ok()) << status;
  status = work();
  EXPECT_TRUE(status.ok()) << status;
  auto graph = kernels.queues()->EndCapture();
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *std::move(graph) : nullptr;
}

constexpr int kSteps = 4;

Values InputOf(int step) {
  return {1.0f + static_cast<float>(step), -2.0f / (1 + step)};
}

// Returns the parameters after kSteps steps. Steps from `first_launched` on are
// launches of a graph.
Values Train(Kernels& kernels, int first_launched) {
  SmallStep small(kernels);
  std::unique_ptr<DeviceGraph> graph;
  std::vector<Tensor> between;
  for (int step = 0; step < kSteps; ++step) {
    Put(kernels, InputOf(step), small.x);
    EXPECT_TRUE(small.SetScalars(step, 0.1 / (1 + step)).ok());
    if (step < first_launched) {
      EXPECT_TRUE(small.Run().ok());
      continue;
    }
    if (graph == nullptr) {
      graph = Captured(kernels, [&] { return small.Run(); });
    }
    EXPECT_TRUE(graph->Launch().ok());
    // The graph and later eager work must not write each other's memory.
    between.push_back(Tensor::Empty({2}, DType::kF32, kernels.allocator()));
    EXPECT_TRUE(kernels.Fill(step, between.back()).ok());
  }
  for (std::size_t i = 0; i < between.size(); ++i) {
    const float number = static_cast<float>(first_launched + i);
    EXPECT_EQ(Back(kernels, between[i]), (Values{number, number}));
  }
  return Back(kernels, small.param);
}

TEST(CudaGraphTest, LaunchesHaveTheBitsOfEagerSteps) {
  for (std::uint64_t seed : Seeds(40)) {
    const EmulatedWorld world(seed);
    const auto kernels = *OpenCudaKernels(0);
    const Values eager = Train(*kernels, /*first_launched=*/kSteps);
    EXPECT_EQ(Train(*kernels, /*first_launched=*/1), eager)
        << ReplayCommand(seed);
  }
}

TEST(CudaGraphTest, ACaptureRunsNothing) {
  const EmulatedWorld world(1);
  const auto kernels = *OpenCudaKernels(0);
  Tensor x = There(*kernels, {3, 4});
  {
    const auto graph =
        Captured(*kernels, [&] { return kernels->Fill(7.0, x); });
    EXPECT_EQ(Back(*kernels, x), (Values{3, 4}));
    ASSERT_TRUE(graph->Launch().ok());
  }  // the launched work runs to its end
  EXPECT_EQ(Back(*kernels, x), (Values{7, 7}));
}

TEST(CudaGraphTest, ItsMemoryGoesWithIt) {
  const EmulatedWorld world(1);
  const auto kernels = *OpenCudaKernels(0);
  Tensor kept;
  {
    const auto graph = Captured(*kernels, [&] {
      kept = Tensor::Empty({1000}, DType::kF32, kernels->allocator());
      return kernels->Fill(5.0, kept);
    });
    ASSERT_TRUE(graph->Launch().ok());
  }
  // A tensor keeps its memory.
  EXPECT_EQ(Back(*kernels, kept), Values(1000, 5.0f));
}

// Each launch draws its mask for the step and position that `place` holds when
// the graph runs.
TEST(CudaGraphTest, EachLaunchDrawsAnew) {
  CachingAllocator host;
  for (std::uint64_t seed : Seeds(10)) {
    const EmulatedWorld world(seed);
    const auto kernels = *OpenCudaKernels(0);
    const Tensor x = There(*kernels, Values(64, 1.0f)).View({4, 16});
    Tensor y = Like(*kernels, x);
    DropoutMask mask = {{RandomKey(/*seed=*/9, Purpose::kTest), {}}};
    mask.draws.first.path = 77;
    mask.drop_below = 1u << 31;
    mask.scale = 2;
    mask.place = *CopyToDevice(*kernels, Queue::kCopy,
                               Tensor::Of<std::int32_t>({2}, {0, 0}, host));
    const auto graph =
        Captured(*kernels, [&] { return kernels->Dropout(mask, x, y); });
    Values before;
    for (std::int32_t step = 0; step < 3; ++step) {
      const Tensor place =
          *CopyToDevice(*kernels, Queue::kCopy,
                        Tensor::Of<std::int32_t>({2}, {step, 4 * step}, host));
      CopyBytes(*kernels, Queue::kCompute, place, mask.place);
      ASSERT_TRUE(graph->Launch().ok());
      DropoutMask eager = mask;
      eager.place = Tensor();
      eager.draws.first.step = static_cast<std::uint32_t>(step);
      eager.draws.first.position = static_cast<std::uint32_t>(4 * step);
      Tensor want = Like(*kernels, x);
      ASSERT_TRUE(kernels->Dropout(eager, x, want).ok());
      const Values got = Back(*kernels, y);
      EXPECT_EQ(got, Back(*kernels, want)) << ReplayCommand(seed);
      EXPECT_NE(got, before);
      before = got;
    }
  }
}

// --- Work that cannot be recorded ---

struct Refusal {
  const char* name;
  const char* words;
  std::function<void(Kernels&, Tensor& x)> call;
};

TEST(CudaGraphTest, SaysWhatCannotBeRecorded) {
  const base::Event of_the_host = base::Event::Make();
  const Refusal refusals[] = {
      {"a host's event", "an event from outside",
       [&](Kernels& kernels, Tensor&) {
         Wait(kernels, Queue::kCompute, of_the_host);
       }},
      {"a copy to the host", "the host's memory",
       [](Kernels& kernels, Tensor& x) {
         CopyBytes(kernels, Queue::kCompute, x, HostNumbers({0, 0}));
       }},
      {"the queue of copies", "the queue of copies",
       [](Kernels& kernels, Tensor& x) {
         CopyBytes(kernels, Queue::kCopy, x, Like(kernels, x));
       }},
      {"a wait of the host", "the host waits",
       [](Kernels& kernels, Tensor&) {
         EXPECT_FALSE(
             Synchronize(kernels, Record(kernels, Queue::kCompute)).ok());
       }},
  };
  for (std::uint64_t seed : Seeds(10)) {
    for (const Refusal& refusal : refusals) {
      const EmulatedWorld world(seed);
      const auto kernels = *OpenCudaKernels(0);
      Tensor x = There(*kernels, {1, 2});
      ASSERT_TRUE(kernels->queues()->BeginCapture().ok());
      EXPECT_TRUE(kernels->Fill(9.0, x).ok());
      refusal.call(*kernels, x);
      EXPECT_FALSE(kernels->Fill(8.0, x).ok()) << refusal.name;
      const auto graph = kernels->queues()->EndCapture();
      EXPECT_THAT(std::string(graph.status().message()),
                  HasSubstr(refusal.words))
          << refusal.name;
      // The refused capture has no effect.
      EXPECT_EQ(Back(*kernels, x), (Values{1, 2})) << refusal.name;
      ASSERT_TRUE(kernels->Fill(3.0, x).ok());
      EXPECT_EQ(Back(*kernels, x), (Values{3, 3})) << refusal.name;
    }
  }
}

TEST(CudaGraphTest, AQueueThatIsHeldIsNotRecorded) {
  const EmulatedWorld world(1);
  const auto kernels = *OpenCudaKernels(0);
  const base::Event host = base::Event::Make();
  Wait(*kernels, Queue::kCompute, host);
  EXPECT_EQ(kernels->queues()->BeginCapture().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(kernels->queues()->capturing());
  host.Complete(absl::OkStatus());
}

// A CUDA call that fails while a step is recorded ends the capture, but not the
// device.
TEST(CudaGraphTest, ACallThatFailsEndsTheCaptureAlone) {
  for (const char* function :
       {"cudaLaunchKernel", "cudaGraphInstantiate", "cudaEventRecord",
        "cudaStreamBeginCapture", "cudaStreamWaitEvent"}) {
    emulated_cuda::Options options = EmulatedWorld::OptionsOf(1);
    std::uint64_t calls = 0;
    for (const bool fails : {false, true}) {
      options.fail.function = function;
      options.fail.number = fails ? calls + 1 : 0;
      EmulatedWorld world(options);
      world.ExpectBroken();
      const auto kernels = *OpenCudaKernels(0);
      SmallStep small(*kernels);
      ASSERT_TRUE(small.SetScalars(0, 0.1).ok());
      ASSERT_TRUE(small.Run().ok());
      const Values once = Back(*kernels, small.param);
      if (!fails) calls = emulated_cuda::CallCount();
      if (kernels->queues()->BeginCapture().ok()) {
        small.Run().IgnoreError();
        EXPECT_EQ(kernels->queues()->EndCapture().ok(), !fails) << function;
      } else {
        EXPECT_TRUE(fails) << function;
      }
      EXPECT_EQ(Back(*kernels, small.param), once) << function;
    }
  }
}

// --- Planted bugs in the launched step, not in the device ---

TEST(CudaGraphTest, FindsAGraphWithAnOldPointer) {
  const EmulatedWorld world(1);
  const auto kernels = *OpenCudaKernels(0);
  const Values eager = Train(*kernels, kSteps);
  SmallStep small(*kernels);
  std::unique_ptr<DeviceGraph> graph;
  for (int step = 0; step < kSteps; ++step) {
    // Each step has a new batch, but the graph reads the first one.
    small.x = There(*kernels, InputOf(step)).View({1, 2});
    ASSERT_TRUE(small.SetScalars(step, 0.1 / (1 + step)).ok());
    if (step == 0) graph = Captured(*kernels, [&] { return small.Run(); });
    ASSERT_TRUE(graph->Launch().ok());
  }
  EXPECT_NE(Back(*kernels, small.param), eager);
}

TEST(CudaGraphTest, FindsScalarsThatWereRecorded) {
  const EmulatedWorld world(1);
  const auto kernels = *OpenCudaKernels(0);
  const Values eager = Train(*kernels, kSteps);
  SmallStep small(*kernels);
  std::unique_ptr<DeviceGraph> graph;
  for (int step = 0; step < kSteps; ++step) {
    Put(*kernels, InputOf(step), small.x);
    if (step == 0) {
      graph = Captured(*kernels, [&] {
        const absl::Status set = small.SetScalars(step, 0.1 / (1 + step));
        return set.ok() ? small.Run() : set;
      });
    }
    ASSERT_TRUE(graph->Launch().ok());
  }
  EXPECT_NE(Back(*kernels, small.param), eager);
}

}  // namespace
}  // namespace troupe::nn::cuda
