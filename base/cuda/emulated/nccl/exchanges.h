// What the ranks of a communicator do together on their streams: collectives,
// and sends with their receives.
//
//     WorkCall all_reduce;
//     all_reduce.kind = Kind::kAllReduce;
//     all_reduce.count = 1024;
//     Work work = CollectiveWork(comm, all_reduce, site);
//
// Threads: all of it under the runtime's lock.

#ifndef BASE_CUDA_EMULATED_NCCL_EXCHANGES_H_
#define BASE_CUDA_EMULATED_NCCL_EXCHANGES_H_

#include <nccl.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/cuda/emulated/nccl/communicator.h"

namespace emulated_cuda {

enum class Kind {
  kAllReduce,
  kReduce,
  kBroadcast,
  kAllGather,
  kReduceScatter,
  kSend,
  kReceive,
};

// One rank's call, as it was made.
struct WorkCall {
  Kind kind = Kind::kAllReduce;
  const char* name = "";
  const void* send = nullptr;
  void* recv = nullptr;
  std::size_t count = 0;  // elements, as the call counts them
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t op = ncclSum;
  int root = 0;  // or the peer of a send or receive
  // Of an operator made by ncclRedOpCreatePreMulSum().
  bool has_factor = false;
  Comm::PreMul factor;
};

// Bytes that the call reads at `send` and writes at `recv`; 0: not at all.
std::size_t BytesRead(const WorkCall& call, int rank, int ranks);
std::size_t BytesWritten(const WorkCall& call, int rank, int ranks);

Work CollectiveWork(const std::shared_ptr<Comm>& comm, const WorkCall& call,
                    const CallSite& site);

// Sends and receives of one group: each goes on as soon as its counterpart is
// at the head of its stream, and the operation ends with the last.
Work TransferWork(const std::shared_ptr<Comm>& comm,
                  const std::vector<WorkCall>& calls, const CallSite& site);

// The rank's pending operations end without having done anything, and its peers
// wait for ever.
void AbortPending(Comm& comm);

// For the exchanges themselves: whether `op` may run but for its peers, and
// that `comm` has begun it.
bool IsAtHead(const Operation& op);
void NoteStarted(Comm& comm, Operation& op);

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_NCCL_EXCHANGES_H_
