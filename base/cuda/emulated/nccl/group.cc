#include "base/cuda/emulated/nccl/group.h"

#include <utility>
#include <vector>

#include "base/cuda/emulated/runtime/scheduler.h"

namespace emulated_cuda {
namespace {

struct Submitted {
  std::shared_ptr<Comm> comm;
  Stream* stream = nullptr;
  WorkCall call;
  CallSite site;
};

struct Group {
  std::uint64_t world = 0;
  int depth = 0;
  std::vector<std::shared_ptr<Comm>> made;
  std::vector<Submitted> calls;
};

Group& ThisGroup() {
  static thread_local Group group;
  if (group.world != ThisThread().world) {
    group = Group();
    group.world = ThisThread().world;
  }
  return group;
}

bool IsTransfer(const WorkCall& call) {
  return call.kind == Kind::kSend || call.kind == Kind::kReceive;
}

// Puts the work on its stream; perhaps later, if the communicator is
// non-blocking.
ncclResult_t Start(Comm& comm, Stream& stream, Work work) {
  if (comm.is_blocking || stream.capture != 0 ||
      (comm.deferred.empty() && TheWorld().random.OneIn(2))) {
    return ResultOf(Enqueue(stream, std::move(work)));
  }
  if (comm.deferred.empty()) comm.polls_left = TheWorld().random.Below(4);
  comm.deferred.push_back({&stream, std::move(work)});
  return ncclInProgress;
}

// Removes the sends and receives with the communicator and stream of `first`
// from `calls`; they become one operation.
std::vector<WorkCall> TakeTransfers(std::vector<Submitted>& calls,
                                    const Submitted& first) {
  std::vector<WorkCall> transfers = {first.call};
  for (std::size_t i = 0; i < calls.size();) {
    if (IsTransfer(calls[i].call) && calls[i].comm == first.comm &&
        calls[i].stream == first.stream) {
      transfers.push_back(calls[i].call);
      calls.erase(calls.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  return transfers;
}

ncclResult_t StartCall(std::vector<Submitted>& others, const Submitted& next) {
  if (!IsTransfer(next.call)) {
    return Start(*next.comm, *next.stream,
                 CollectiveWork(next.comm, next.call, next.site));
  }
  return Start(*next.comm, *next.stream,
               TransferWork(next.comm, TakeTransfers(others, next), next.site));
}

// Keeps the first error among several results, or else ncclInProgress.
void Note(ncclResult_t result, ncclResult_t* worst) {
  const bool replaces = *worst == ncclSuccess || *worst == ncclInProgress;
  if (result != ncclSuccess && replaces) *worst = result;
}

}  // namespace

bool InGroup() { return ThisGroup().depth > 0; }

ncclResult_t Submit(const std::shared_ptr<Comm>& comm, Stream& stream,
                    const WorkCall& call, const CallSite& site) {
  const Submitted submitted{comm, &stream, call, site};
  if (InGroup()) {
    ThisGroup().calls.push_back(submitted);
    return ncclSuccess;
  }
  std::vector<Submitted> none;
  return StartCall(none, submitted);
}

ncclResult_t SubmitNew(const std::shared_ptr<Comm>& comm,
                       const CallSite& site) {
  if (!InGroup()) return Conclude(comm, site);
  ThisGroup().made.push_back(comm);
  return comm->is_blocking ? ncclSuccess : ncclInProgress;
}

}  // namespace emulated_cuda

using emulated_cuda::Submitted;
using emulated_cuda::ThisGroup;

extern "C" {

ncclResult_t ncclGroupStart() {
  EMULATED_NCCL_CALL();
  ++ThisGroup().depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  EMULATED_NCCL_CALL();
  emulated_cuda::Group& group = ThisGroup();
  if (group.depth == 0) {
    return emulated_cuda::Refuse(ncclInvalidUsage, "no group was begun");
  }
  if (--group.depth > 0) return ncclSuccess;
  ncclResult_t result = ncclSuccess;
  for (const auto& comm : std::exchange(group.made, {})) {
    emulated_cuda::Note(Conclude(comm, call.site()), &result);
  }
  // Random order, but the calls of one communicator keep theirs.
  std::vector<Submitted> calls = std::exchange(group.calls, {});
  while (!calls.empty()) {
    std::size_t next = emulated_cuda::TheWorld().random.Below(calls.size());
    for (std::size_t i = 0; i < next; ++i) {
      if (calls[i].comm == calls[next].comm) next = i;
    }
    const Submitted first = calls[next];
    calls.erase(calls.begin() + static_cast<std::ptrdiff_t>(next));
    emulated_cuda::Note(emulated_cuda::StartCall(calls, first), &result);
  }
  return result;
}

}  // extern "C"
