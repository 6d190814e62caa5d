#include "base/cuda/emulated/runtime/scheduler.h"

#include <chrono>
#include <exception>
#include <optional>
#include <utility>

#include "base/cuda/emulated/runtime/api_call.h"
#include "base/cuda/emulated/runtime/capture.h"
#include "base/cuda/emulated/runtime/world.h"

namespace emulated_cuda {
namespace {

thread_local bool runs_an_operation = false;

bool IsBroken(const Stream& stream) {
  return TheWorld().devices[static_cast<std::size_t>(stream.device)].broken !=
         cudaSuccess;
}

bool CanRun(const Operation& op) {
  if (!WaitsForNothing(op)) return false;
  return !op.exchange || IsBroken(*op.stream) || op.exchange->CanAdvance(op);
}

// Runs user code: a kernel or a host function.
void RunUsersCode(Operation& op) {
  // The locks of the kernels' executor must not order the program.
  const OrdersNothing scope;
  op.work.run();
}

void RunWork(Operation& op) {
  Stream& stream = *op.stream;
  if (!op.work.run || IsBroken(stream)) return;
  const OpenMemory open(op.work.devices);
  runs_an_operation = true;
  try {
    if (op.work.is_users) {
      stream.thread->CallOnOwnStack(op.work.site, [&] { RunUsersCode(op); });
    } else {
      stream.thread->Call(op.work.site, op.work.run);
    }
  } catch (const std::exception& error) {
    Problem(std::string(error.what()) + " [" + Describe(op.work) + ", on " +
            NameOf(stream) + "]");
    TheWorld().devices[static_cast<std::size_t>(stream.device)].broken =
        cudaErrorLaunchFailure;
  }
  runs_an_operation = false;
}

void Run(const OperationPtr& op) {
  Stream& stream = *op->stream;
  if (op->exchange && IsBroken(stream)) op->exchange->Leave(*op);
  if (op->exchange && !IsBroken(stream)) {
    const OpenMemory open(op->exchange->devices());
    if (!op->exchange->Advance(*op)) return;
  }
  stream.queue.pop_front();
  CallAs(*op, [] {});
  RunWork(*op);
  stream.thread->Call(op->work.site, [&] { Release(op->done_edge); });
  World& world = TheWorld();
  world.now_ns += 1000 + world.random.Below(9000);
  op->done = true;
  op->done_at_ns = world.now_ns;
  op->after.clear();
  op->exchange.reset();
  ++world.activity.counts.executed;
  world.trace.Add(*op);
  op->work.run = nullptr;
}

}  // namespace

bool RunsAnOperation() { return runs_an_operation; }

void CallAs(Operation& op, const std::function<void()>& f) {
  op.stream->thread->Call(op.work.site, [&] {
    Acquire(op.enqueued_edge);
    for (const OperationPtr& before : op.after) Acquire(before->done_edge);
    f();
  });
}

bool WaitsForNothing(const Operation& op) {
  for (const OperationPtr& before : op.after) {
    if (!before->done) return false;
  }
  return true;
}

cudaError_t Enqueue(Stream& stream, Work work) {
  World& world = TheWorld();
  const Device& device = world.devices[static_cast<std::size_t>(stream.device)];
  if (stream.capture != 0) return Fail(Record(stream, std::move(work)));
  if (&stream == device.null_stream && RefuseUnsafeCall()) {
    return Fail(cudaErrorStreamCaptureImplicit);
  }
  if (device.broken != cudaSuccess) return Fail(device.broken);
  Push(stream, std::move(work), {});
  return cudaSuccess;
}

OperationPtr Push(Stream& stream, Work work, std::vector<OperationPtr> after) {
  World& world = TheWorld();
  auto op = std::make_shared<Operation>();
  op->work = std::move(work);
  op->stream = &stream;
  op->number = stream.next_number++;
  op->after = std::move(after);
  // The null stream is ordered with every blocking stream of its device.
  const Device& device = world.devices[static_cast<std::size_t>(stream.device)];
  if (&stream == device.null_stream) {
    for (auto& other : world.streams) {
      if (other->device == stream.device && other->is_blocking &&
          !other->is_branch && other.get() != &stream && other->last) {
        op->after.push_back(other->last);
      }
    }
  } else if (stream.is_blocking && !stream.is_branch && device.null_stream &&
             device.null_stream->last) {
    op->after.push_back(device.null_stream->last);
  }
  Release(op->enqueued_edge);
  if (op->work.join) op->exchange = op->work.join(*op);
  stream.queue.push_back(op);
  stream.last = op;
  ++world.activity.counts.enqueued;
  return op;
}

bool Step() {
  World& world = TheWorld();
  const bool redraw = world.random.OneIn(world.habits.redraw_one_in);
  Stream* chosen = nullptr;
  for (auto& stream : world.streams) {
    if (stream->queue.empty()) continue;
    if (redraw) stream->turn = world.random.Below(1u << 30);
    if (chosen != nullptr && stream->turn <= chosen->turn) continue;
    if (CanRun(*stream->queue.front())) chosen = stream.get();
  }
  if (chosen == nullptr) return false;
  Run(OperationPtr(chosen->queue.front()));
  return true;
}

void RunSome() {
  World& world = TheWorld();
  if (world.habits.eagerness == 2) {
    while (!world.random.OneIn(16) && Step()) {
    }
  } else if (world.habits.eagerness == 1 && world.random.OneIn(8)) {
    while (!world.random.OneIn(4) && Step()) {
    }
  }
}

void RunBeforeAnswer() {
  for (std::uint64_t left = TheWorld().random.Below(16); left > 0; --left) {
    if (!Step()) return;
  }
}

bool WaitUntil(const std::function<bool()>& done,
               const std::function<std::string()>& what) {
  using Clock = std::chrono::steady_clock;
  World& world = TheWorld();
  std::optional<std::uint64_t> seen;
  Clock::time_point since;
  while (!done()) {
    if (Step()) continue;
    const std::uint64_t moves = world.activity.moves();
    if (seen != moves) since = Clock::now();
    seen = moves;
    const std::chrono::duration<double> stalled = Clock::now() - since;
    if (world.activity.IsStuck()) return false;
    if (stalled.count() >= world.options.stall_seconds) {
      Problem("deadlock: the host waits for " + what() + Pending());
      world.activity.SetStuck();
      return false;
    }
    WorldLock::LetOthersIn();
  }
  return true;
}

cudaError_t WaitFor(const OperationPtr& op, const std::string& what) {
  const bool is_done =
      WaitUntil([&] { return !op || op->done; }, [&] { return what; });
  if (!is_done) return Fail(cudaErrorLaunchTimeout);
  Hear(op);
  return cudaSuccess;
}

void Hear(const OperationPtr& op) {
  if (op) Acquire(op->done_edge);
}

std::string Pending() {
  std::string text;
  for (auto& stream : TheWorld().streams) {
    if (stream->queue.empty()) continue;
    const Operation& op = *stream->queue.front();
    text += "\n  " + NameOf(*stream) + ": " +
            std::to_string(stream->queue.size()) + " operations, the first " +
            Describe(op.work);
    if (op.exchange) text += ", which " + op.exchange->State(op);
    if (!WaitsForNothing(op)) text += ", which waits for other streams";
  }
  return text;
}

}  // namespace emulated_cuda
