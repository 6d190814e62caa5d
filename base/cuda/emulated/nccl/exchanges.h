// Operations that the ranks of a communicator carry out together on their
// streams: collectives, and sends with their receives.
//
//     WorkCall all_reduce;
//     all_reduce.kind = Kind::kAllReduce;
//     all_reduce.count = 1024;
//     Work work = CollectiveWork(comm, all_reduce, site);
//
// Threads: all of it runs under the runtime's lock.

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

// Arguments of one rank's call.
struct WorkCall {
  Kind kind = Kind::kAllReduce;
  const char* name = "";
  const void* send = nullptr;
  void* recv = nullptr;
  std::size_t count = 0;  // number of elements, as in the call
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t op = ncclSum;
  int root = 0;  // root, or the peer of a send or receive
  // Set for an operator made by ncclRedOpCreatePreMulSum().
  bool has_factor = false;
  PreMul factor;
};

// Return the bytes that the call reads at `send` and writes at `recv`; 0: none.
std::size_t BytesRead(const WorkCall& call, int rank, int ranks);
std::size_t BytesWritten(const WorkCall& call, int rank, int ranks);

Work CollectiveWork(const std::shared_ptr<Comm>& comm, const WorkCall& call,
                    const CallSite& site);

// Makes one operation of the sends and receives of a group: each advances as
// soon as its counterpart is at the head of its stream, and the operation ends
// with the last.
Work TransferWork(const std::shared_ptr<Comm>& comm,
                  const std::vector<WorkCall>& calls, const CallSite& site);

// Ends the rank's pending operations without an effect; its peers wait for
// ever.
void AbortPending(Comm& comm);

// For the exchanges themselves: IsAtHead() returns whether `op` waits for its
// peers only; NoteStarted() records that `comm` has begun it.
bool IsAtHead(const Operation& op);
void NoteStarted(Comm& comm, Operation& op);

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_NCCL_EXCHANGES_H_
