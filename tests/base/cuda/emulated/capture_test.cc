// Stream capture and graphs of the emulated runtime.

#include <cuda_runtime_api.h>

#include <set>
#include <string>
#include <thread>

#include "base/cuda/emulated/enqueue.h"
#include "gtest/gtest.h"
#include "tests/base/cuda/emulated/runtime_test_util.h"
#include "tests/base/seeds.h"

namespace emulated_cuda_test {
namespace {

using troupe::ReplayCommand;
using troupe::Seeds;

constexpr auto kThreadLocal = cudaStreamCaptureModeThreadLocal;

class CaptureTest : public testing::Test {
 protected:
  void Begin(cudaStreamCaptureMode mode = kThreadLocal) {
    ASSERT_EQ(cudaStreamBeginCapture(a_, mode), cudaSuccess);
  }
  cudaError_t End() { return cudaStreamEndCapture(a_, &graph_); }
  cudaStreamCaptureStatus Status() {
    cudaStreamCaptureStatus status{};
    EXPECT_EQ(cudaStreamIsCapturing(a_, &status), cudaSuccess);
    return status;
  }

  const cudaStream_t a_ = (NewWorld(1), NewStream());
  const cudaStream_t b_ = NewStream();
  const cudaEvent_t event_ = NewEvent();
  float* const x_ = OnDevice<float>(4);
  cudaGraph_t graph_ = nullptr;
};

TEST_F(CaptureTest, AForkThatIsNotJoinedIsAnError) {
  Begin();
  cudaEventRecord(event_, a_);
  cudaStreamWaitEvent(b_, event_, 0);
  ASSERT_EQ(cudaMemsetAsync(x_, 0, 16, b_), cudaSuccess);
  EXPECT_EQ(End(), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(graph_, nullptr);
  EXPECT_EQ(Status(), cudaStreamCaptureStatusNone);
}

TEST_F(CaptureTest, UnsafeCallsEndIt) {
  void* p = nullptr;
  for (int which = 0; which < 7; ++which) {
    Begin();
    EXPECT_EQ(Status(), cudaStreamCaptureStatusActive);
    const cudaError_t error = which == 0   ? cudaMalloc(&p, 16)
                              : which == 1 ? cudaFree(x_)
                              : which == 2 ? cudaMallocHost(&p, 16)
                              : which == 3 ? cudaStreamSynchronize(b_)
                              : which == 4 ? cudaEventQuery(event_)
                              : which == 5 ? cudaDeviceSynchronize()
                                           : cudaMallocAsync(&p, 16, a_);
    EXPECT_EQ(error, cudaErrorStreamCaptureUnsupported) << which;
    EXPECT_EQ(Status(), cudaStreamCaptureStatusInvalidated);
    EXPECT_EQ(cudaMemsetAsync(x_, 0, 16, a_),
              cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(End(), cudaErrorStreamCaptureInvalidated);
  }
  EXPECT_EQ(cudaGetLastError(), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(CaptureTest, ARelaxedOnePermitsThem) {
  Begin(cudaStreamCaptureModeRelaxed);
  cudaFree(OnDevice<float>(4));
  EXPECT_EQ(End(), cudaSuccess);
}

TEST_F(CaptureTest, AnotherThreadIsStoppedByAGlobalOneOnly) {
  for (const bool global : {false, true}) {
    Begin(global ? cudaStreamCaptureModeGlobal : kThreadLocal);
    cudaError_t error = cudaSuccess;
    std::thread([&] { error = cudaEventQuery(event_); }).join();
    EXPECT_EQ(error, global ? cudaErrorStreamCaptureUnsupported : cudaSuccess);
    EXPECT_EQ(End(), global ? cudaErrorStreamCaptureInvalidated : cudaSuccess);
  }
  Begin(cudaStreamCaptureModeGlobal);
  cudaError_t error = cudaErrorUnknown;
  std::thread([&] {
    cudaStreamCaptureMode mode = kThreadLocal;
    cudaThreadExchangeStreamCaptureMode(&mode);
    error = cudaEventQuery(event_);
  }).join();
  EXPECT_EQ(error, cudaSuccess);
  EXPECT_EQ(End(), cudaSuccess);
}

TEST_F(CaptureTest, OnlyItsOwnThreadAndStreamEndIt) {
  Begin();
  cudaEventRecord(event_, a_);
  cudaStreamWaitEvent(b_, event_, 0);
  EXPECT_EQ(cudaStreamEndCapture(b_, &graph_), cudaErrorStreamCaptureUnmatched);
  cudaError_t error = cudaSuccess;
  std::thread([&] { error = End(); }).join();
  EXPECT_EQ(error, cudaErrorStreamCaptureWrongThread);
  EXPECT_EQ(End(), cudaSuccess);
  EXPECT_EQ(End(), cudaErrorIllegalState);
}

TEST_F(CaptureTest, EventsDoNotCrossItsBorder) {
  const cudaEvent_t outside = NewEvent();
  cudaEventRecord(outside, b_);
  Begin();
  EXPECT_EQ(cudaStreamWaitEvent(a_, outside, 0),
            cudaErrorStreamCaptureIsolation);
  EXPECT_EQ(End(), cudaErrorStreamCaptureInvalidated);
  Begin();
  cudaEventRecord(event_, a_);
  EXPECT_EQ(cudaEventQuery(event_), cudaErrorCapturedEvent);
  EXPECT_EQ(End(), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaEventSynchronize(event_), cudaErrorCapturedEvent);
  EXPECT_EQ(cudaStreamWaitEvent(b_, event_, 0), cudaErrorCapturedEvent);
}

TEST_F(CaptureTest, TwoCapturesDoNotMerge) {
  Begin();
  cudaEventRecord(event_, a_);
  ASSERT_EQ(cudaStreamBeginCapture(b_, kThreadLocal), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(b_, event_, 0), cudaErrorStreamCaptureMerge);
  cudaGraph_t other = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(b_, &other),
            cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(End(), cudaErrorStreamCaptureInvalidated);
}

TEST_F(CaptureTest, TheNullStreamIsNotCaptured) {
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, kThreadLocal),
            cudaErrorStreamCaptureUnsupported);
  Begin();
  EXPECT_EQ(cudaMemsetAsync(x_, 0, 16, nullptr),
            cudaErrorStreamCaptureImplicit);
  EXPECT_EQ(End(), cudaErrorStreamCaptureInvalidated);
}

struct Letter {
  std::string* text;
  char letter;
  static void Write(void* self) {
    auto* const letter = static_cast<Letter*>(self);
    letter->text->push_back(letter->letter);
  }
};

// The graph runs a, then b and x in parallel, then z. Two launches of it run
// one after the other.
TEST(GraphTest, BranchesRunInEveryOrderAndLaunchesInTheirs) {
  if (kUnderTsan) GTEST_SKIP() << "races on purpose";
  std::set<std::string> orders;
  for (std::uint64_t seed : Seeds(200)) {
    NewWorld(seed);
    std::string text;
    Letter letters[] = {{&text, 'a'}, {&text, 'b'}, {&text, 'x'}, {&text, 'z'}};
    const cudaStream_t s = NewStream();
    const cudaStream_t t = NewStream();
    const cudaEvent_t fork = NewEvent();
    const cudaEvent_t join = NewEvent();
    cudaStreamBeginCapture(s, kThreadLocal);
    cudaLaunchHostFunc(s, Letter::Write, &letters[0]);
    cudaEventRecord(fork, s);
    cudaStreamWaitEvent(t, fork, 0);
    cudaLaunchHostFunc(t, Letter::Write, &letters[2]);
    cudaLaunchHostFunc(s, Letter::Write, &letters[1]);
    cudaEventRecord(join, t);
    cudaStreamWaitEvent(s, join, 0);
    cudaLaunchHostFunc(s, Letter::Write, &letters[3]);
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(s, &graph), cudaSuccess);
    EXPECT_EQ(text, "") << "nothing runs while it is captured";
    std::size_t nodes = 0;
    cudaGraphGetNodes(graph, nullptr, &nodes);
    EXPECT_EQ(nodes, 4u);
    cudaGraphExec_t exec = nullptr;
    ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    cudaGraphDestroy(graph);
    ASSERT_EQ(cudaGraphLaunch(exec, s), cudaSuccess);
    ASSERT_EQ(cudaGraphLaunch(exec, t), cudaSuccess);
    cudaDeviceSynchronize();
    orders.insert(text);
    cudaGraphExecDestroy(exec);
    for (cudaStream_t stream : {s, t}) cudaStreamDestroy(stream);
    for (cudaEvent_t event : {fork, join}) cudaEventDestroy(event);
    ASSERT_EQ(AllProblems(), "") << ReplayCommand(seed);
  }
  EXPECT_EQ(orders, (std::set<std::string>{"abxzabxz", "abxzaxbz", "axbzabxz",
                                           "axbzaxbz"}));
}

// A graph keeps the scalar argument of a kernel as captured, and the pointer of
// a copy, whose memory it reads at each launch.
TEST(GraphTest, ScalarsAreFrozenAndPointersRead) {
  NewWorld(1);
  const cudaStream_t stream = NewStream();
  float* const x = OnDevice<float>(2);
  float* const pinned = PinnedMemory<float>(2);
  float scalar = 1.0f;
  cudaStreamBeginCapture(stream, kThreadLocal);
  emulated_cuda::EnqueueKernel(stream, {"Set", __FILE__, __LINE__},
                               [x, scalar] { x[0] = scalar; });
  cudaMemcpyAsync(x + 1, pinned, 4, cudaMemcpyHostToDevice, stream);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiateWithFlags(&exec, graph, 0), cudaSuccess);
  for (const float value : {2.0f, 3.0f}) {
    scalar = pinned[0] = value;
    ASSERT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
    float out[2];
    cudaMemcpyAsync(out, x, 8, cudaMemcpyDeviceToHost, stream);
    EXPECT_EQ(out[0], 1.0f);
    EXPECT_EQ(out[1], value);
  }
  cudaGraphDestroy(graph);
  cudaGraphExecDestroy(exec);
  EXPECT_EQ(cudaGraphLaunch(exec, stream), cudaErrorInvalidResourceHandle);
  cudaFree(x);
  cudaFreeHost(pinned);
  cudaStreamDestroy(stream);
  EXPECT_EQ(AllProblems(), "");
}

}  // namespace
}  // namespace emulated_cuda_test
