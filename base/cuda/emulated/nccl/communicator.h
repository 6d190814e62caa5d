// Communicators of the emulated NCCL, and what their ranks share.
//
//     const std::shared_ptr<Comm> comm = FindComm(handle);
//     if (!comm) return Refuse(ncclInvalidArgument, "no such communicator");
//     if (!Poll(*comm)) return ncclInProgress;
//
// Threads: all of it under the runtime's lock.

#ifndef BASE_CUDA_EMULATED_NCCL_COMMUNICATOR_H_
#define BASE_CUDA_EMULATED_NCCL_COMMUNICATOR_H_

#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/cuda/emulated/runtime/api_call.h"
#include "base/cuda/emulated/runtime/operation.h"
#include "base/cuda/emulated/runtime/world.h"

namespace emulated_cuda {

class Collective;
struct Comm;
struct Transfer;

// A call of ncclCommSplit() by all ranks.
struct Split {
  struct Child {
    int color = 0;
    int key = 0;
    int parent_rank = 0;
    std::shared_ptr<Comm> comm;  // null: NCCL_SPLIT_NOCOLOR
  };
  std::vector<Child> children;
};

// What the ranks of a communicator share.
struct Clique {
  int ranks = 0;
  int joined = 0;
  // The ranks disagreed: hardware would hang.
  bool is_broken = false;
  // Begun by some ranks, whose operations hold them: by their number, in order
  // of the calls.
  std::map<std::uint64_t, std::weak_ptr<Collective>> collectives;
  std::map<std::uint64_t, Split> splits;
  // Sends and receives that wait for their counterpart, by (from, to).
  struct Channel {
    std::deque<std::shared_ptr<Transfer>> sends;
    std::deque<std::shared_ptr<Transfer>> receives;
  };
  std::map<std::pair<int, int>, Channel> channels;
};

// Work that a non-blocking call has not put on its stream yet.
struct Deferred {
  Stream* stream = nullptr;
  Work work;
};

struct Comm {
  // Null: a split that others have not joined, or lost.
  std::shared_ptr<Clique> clique;
  int rank = 0;
  int device = 0;
  bool is_blocking = true;
  bool is_ready = false;
  bool is_finalizing = false;
  bool is_aborted = false;
  ncclResult_t error = ncclSuccess;  // of FailComm()
  std::uint64_t next_collective = 0;
  std::uint64_t next_split = 0;
  // Questions to be answered ncclInProgress before the next step.
  std::uint64_t polls_left = 0;
  std::vector<Deferred> deferred;
  // This rank's operations that wait for peers.
  std::vector<std::weak_ptr<Operation>> started;
  std::map<const void*, std::size_t> registered;  // bytes
  // Of ncclRedOpCreatePreMulSum().
  struct PreMul {
    ncclDataType_t type = ncclFloat32;
    const void* on_device = nullptr;
    std::vector<char> value;  // empty: on_device
  };
  std::map<int, PreMul> operators;
  int next_operator = ncclNumOps;
};

struct Nccl : Extension {
  std::vector<std::string> Leaks() const override;

  std::map<std::uint64_t, std::shared_ptr<Clique>> cliques;
  std::map<const void*, std::shared_ptr<Comm>> comms;
  std::uint64_t next_id = 1;
  std::size_t registrations = 0;  // since the beginning
  // Calls until FailCollective()'s, which fails; 0: none does.
  std::uint64_t calls_to_failure = 0;
  ncclResult_t failure = ncclSuccess;
  // Communicators until LoseComm()'s, which is lost; 0: none is.
  std::uint64_t comms_to_loss = 0;
  std::string last_error;
};

Nccl& TheNccl();
std::shared_ptr<Comm> FindComm(ncclComm_t handle);
ncclComm_t HandleOf(const std::shared_ptr<Comm>& comm);

// One look at what a communicator does in the background. True: nothing is left
// to do.
bool Poll(Comm& comm);

// Remembers the text for ncclGetLastError() and returns the error.
ncclResult_t Refuse(ncclResult_t error, const std::string& text);

// Whether `comm` may be used now; else why not.
ncclResult_t CheckUsable(const Comm& comm);

// The end of a call that began something for `comm`: waits, or answers
// ncclInProgress, as the communicator is configured.
ncclResult_t Conclude(const std::shared_ptr<Comm>& comm, const CallSite& site);

// What was registered and is gone is reported; `registration` goes.
void Deregister(Comm& comm, const void* registration);

// Operations of `comm` that are not complete.
bool HasPending(const Comm& comm);

ncclResult_t ResultOf(cudaError_t error);

#define EMULATED_NCCL_CALL()                                           \
  ::emulated_cuda::ApiCall call(__func__, __builtin_frame_address(0)); \
  if (call.refused() != cudaSuccess) {                                 \
    return ::emulated_cuda::ResultOf(call.refused());                  \
  }

// For calls that a broken device does not keep from working.
#define EMULATED_NCCL_CALL_ANYWAY()                                   \
  ::emulated_cuda::ApiCall call(__func__, __builtin_frame_address(0), \
                                ::emulated_cuda::OnBroken::kWorks);   \
  if (call.refused() != cudaSuccess) {                                \
    return ::emulated_cuda::ResultOf(call.refused());                 \
  }

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_NCCL_COMMUNICATOR_H_
