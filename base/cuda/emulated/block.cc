#include "base/cuda/emulated/block.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/cuda/emulated/report.h"
#include "base/cuda/emulated/warp_operation.h"

namespace emulated_cuda {
namespace {

// Exception that unwinds the remaining threads after a kernel has failed.
struct Abandoned {};

bool SameSite(CodeSite a, CodeSite b) {
  return a.line == b.line &&
         (a.file == b.file || std::strcmp(a.file, b.file) == 0);
}

}  // namespace

void Block::BeginGrid(const Grid& grid, const std::function<void()>& body,
                      Random* random) {
  grid_ = grid;
  body_ = &body;
  random_ = random;
  order_ = CurrentSchedule().order;
  const dim3 block = grid.block;
  count_ = block.x * block.y * block.z;
  blockDim = block;
  gridDim = grid.grid;
  fibers_.Prepare(threads_, count_);
  fibers_.BeginGrid();
  for (unsigned i = 0; i < count_; ++i) {
    threads_[i].index = {i % block.x, i / block.x % block.y,
                         i / (block.x * block.y)};
  }
}

std::exception_ptr Block::Run(uint3 index) {
  blockIdx = index;
  Start();
  fibers_.BlockBegins();
  while (CudaThread* next = TakeNext()) Enter(*next);
  if (alive_ != 0 && !error_) {
    error_ = std::make_exception_ptr(ErrorOfThreads(
        "deadlock: the threads of a block wait for each other in different "
        "places"));
  }
  if (error_) Abandon();
  fibers_.BlockEnds();
  return std::exchange(error_, nullptr);
}

void Block::Start() {
  alive_ = count_;
  arrived_ = 0;
  ready_.Clear();
  for (unsigned w = 0; w * kWarpLanes < count_; ++w) {
    const unsigned lanes = std::min(kWarpLanes, count_ - w * kWarpLanes);
    warps_[w].done = lanes == kWarpLanes ? 0u : ~0u << lanes;
    warps_[w].waiting = 0;
  }
  for (unsigned i = 0; i < count_; ++i) {
    threads_[i].started = false;
    MakeReady(threads_[i]);
  }
  ++stats_.blocks;
  stats_.threads += count_;
}

void Block::Abandon() {
  abandoning_ = true;
  due_ = nullptr;
  for (unsigned i = 0; i < count_; ++i) {
    CudaThread& thread = threads_[i];
    if (thread.started && thread.state != ThreadState::kDone) Enter(thread);
  }
  abandoning_ = false;
}

// Returns the thread that runs next, or null if none can, or one has failed.
CudaThread* Block::TakeNext() {
  if (error_) return nullptr;
  if (due_ != nullptr) return std::exchange(due_, nullptr);
  if (ready_.empty()) return nullptr;
  return &threads_[ready_.Take(order_, *random_)];
}

// Runs a thread from begin to end, and then, on the same stack, those that are
// next and have not begun. Returns the last one.
CudaThread& Block::RunThreads(CudaThread& first) {
  CudaThread* thread = &first;
  for (;;) {
    ThreadMain(*thread);
    if (!fibers_.hands_over()) return *thread;
    CudaThread* const next = TakeNext();
    if (next == nullptr) return *thread;
    if (next->started) {
      due_ = next;  // the scheduler enters it
      return *thread;
    }
    fibers_.HandOver(*thread, *next);
    Begin(*next);
    thread = next;
  }
}

void Block::ThreadMain(CudaThread& thread) {
  try {
    (*body_)();
    ThreadReturned(thread);
  } catch (const Abandoned&) {
  } catch (...) {
    error_ = std::current_exception();
  }
  thread.state = ThreadState::kDone;
}

// Makes the thread the running one.
void Block::Begin(CudaThread& thread) {
  thread.started = true;
  running_ = &thread;
  threadIdx = thread.index;
}

void Block::Enter(CudaThread& thread) {
  if (!thread.started) {
    fibers_.Start(thread, [this](CudaThread& first) -> CudaThread& {
      return RunThreads(first);
    });
  }
  Begin(thread);
  fibers_.Enter(thread, running_);
  running_ = nullptr;
}

void Block::Wait(CudaThread& thread) {
  ++stats_.waits;
  fibers_.Wait(thread);
  if (abandoning_) throw Abandoned();
}

void Block::MakeReady(CudaThread& thread) {
  thread.state = ThreadState::kReady;
  ready_.Add(thread.id);
}

CudaThread& Block::Running(const char* what) {
  if (running_ == nullptr) {
    throw Error(std::string("emulated_cuda: ") + what +
                " called outside a kernel");
  }
  return *running_;
}

int Block::BlockOp(Op op, int predicate, CodeSite site) {
  CudaThread& thread = Running(NameOf(op));
  thread.call = {op, /*mask=*/0, predicate != 0 ? 1u : 0u};
  thread.site = site;
  thread.state = ThreadState::kAtBarrier;
  ++arrived_;
  TryReleaseBarrier();
  Wait(thread);
  return static_cast<int>(thread.result);
}

// Releases the threads at the barrier once all living threads have arrived.
void Block::TryReleaseBarrier() {
  if (arrived_ == 0 || arrived_ < alive_) return;
  const auto for_each = [this](auto visit) {
    for (unsigned i = 0; i < count_; ++i) {
      if (threads_[i].state == ThreadState::kAtBarrier) visit(threads_[i]);
    }
  };
  const CudaThread* first = nullptr;
  unsigned votes = 0;
  for_each([&](CudaThread& thread) {
    if (first == nullptr) first = &thread;
    if (thread.call.op != first->call.op ||
        !SameSite(thread.site, first->site)) {
      throw ErrorOfThreads("the threads of a block met at different barriers");
    }
    votes += thread.call.value != 0 ? 1u : 0u;
  });
  std::uint64_t result = votes;
  if (first->call.op == Op::kSyncthreadsAnd) result = votes == arrived_;
  if (first->call.op == Op::kSyncthreadsOr) result = votes != 0;
  fibers_.Order(&barrier_, for_each);
  for_each([&](CudaThread& thread) {
    thread.result = result;
    MakeReady(thread);
  });
  arrived_ = 0;
}

// Marks the thread as done. It counts as arrived at all later barriers, as on
// sm_70 and later.
void Block::ThreadReturned(CudaThread& thread) {
  thread.state = ThreadState::kDone;
  --alive_;
  const unsigned warp_index = thread.id / kWarpLanes;
  Warp& warp = warps_[warp_index];
  warp.done |= 1u << thread.id % kWarpLanes;
  TryReleaseBarrier();
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    if ((warp.waiting >> lane & 1) == 0) continue;
    const CudaThread& waiting = threads_[warp_index * kWarpLanes + lane];
    TryCompleteWarpOp(warp_index, waiting.call.mask);
  }
}

void Block::CheckCall(const CudaThread& thread) const {
  const LaneCall& call = thread.call;
  // Texts are made for errors only: every lane comes here at each call.
  if ((call.mask >> thread.id % kWarpLanes & 1) == 0) {
    throw ErrorOf(ThreadText(thread) + " calls " + NameOf(call.op) + " at " +
                  TextOf(thread.site) + " with mask " + MaskText(call.mask) +
                  ", which lacks its own lane");
  }
  const bool width_is_right = call.width >= 1 && call.width <= 32 &&
                              (call.width & (call.width - 1)) == 0;
  // __shfl_sync accepts any lane, modulo the width.
  const bool argument_is_right =
      call.op == Op::kShfl || (call.argument >= 0 && call.argument < 32);
  if (!width_is_right || !argument_is_right) {
    throw ErrorOf("bad argument of " + std::string(NameOf(call.op)) + " at " +
                  TextOf(thread.site));
  }
}

std::uint64_t Block::WarpOp(const LaneCall& call, CodeSite site) {
  CudaThread& thread = Running(NameOf(call.op));
  thread.call = call;
  thread.site = site;
  CheckCall(thread);
  thread.state = ThreadState::kInWarpOp;
  const unsigned warp_index = thread.id / kWarpLanes;
  warps_[warp_index].waiting |= 1u << thread.id % kWarpLanes;
  TryCompleteWarpOp(warp_index, call.mask);
  Wait(thread);
  return thread.result;
}

// Completes the operation with this mask once all its living lanes wait in the
// same call. Lanes that wait in different calls are left alone: if nothing else
// releases them, that is the deadlock to report.
void Block::TryCompleteWarpOp(unsigned warp_index, unsigned mask) {
  Warp& warp = warps_[warp_index];
  const unsigned lanes = mask & ~warp.done;
  if (lanes == 0 || (warp.waiting & lanes) != lanes) return;
  CudaThread* const all = &threads_[warp_index * kWarpLanes];
  const CudaThread& first = all[__builtin_ctz(lanes)];
  for (unsigned rest = lanes; rest != 0; rest &= rest - 1) {
    const CudaThread& thread = all[__builtin_ctz(rest)];
    if (thread.call.op != first.call.op || thread.call.mask != mask ||
        thread.call.width != first.call.width ||
        !SameSite(thread.site, first.site)) {
      return;
    }
  }
  if (const AbsentRead bad = ComputeWarpOperation(all, lanes);
      bad.reader >= 0) {
    const CudaThread& reader = all[bad.reader];
    throw ErrorOf(ThreadText(reader) + " reads lane " +
                  std::to_string(bad.lane) + ", which takes no part in " +
                  NameOf(reader.call.op) + " at " + TextOf(reader.site) +
                  " (mask " + MaskText(mask) + ", taking part " +
                  MaskText(lanes) + ")");
  }
  const auto for_each = [&](auto visit) {
    for (unsigned rest = lanes; rest != 0; rest &= rest - 1) {
      visit(all[__builtin_ctz(rest)]);
    }
  };
  if (first.call.op == Op::kSyncwarp) fibers_.Order(&warp.barrier, for_each);
  warp.waiting &= ~lanes;
  for_each([&](CudaThread& thread) { MakeReady(thread); });
}

void Block::Trap(CodeSite site) {
  const CudaThread& thread = Running("__trap");
  throw ErrorOf(ThreadText(thread) + " calls __trap at " + TextOf(site));
}

Error Block::ErrorOf(const std::string& what) const {
  return Error(ReportOf(what, grid_, blockIdx));
}

Error Block::ErrorOfThreads(const std::string& what) const {
  return Error(ReportOf(what, grid_, blockIdx) +
               ThreadsByPlace(threads_, count_));
}

}  // namespace emulated_cuda
