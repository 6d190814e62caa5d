// Communicators of the emulated NCCL, and the state that their ranks share.
//
//     const std::shared_ptr<Comm> comm = FindComm(handle);
//     if (!comm) return Refuse(ncclInvalidArgument, "no such communicator");
//     if (!Poll(*comm)) return ncclInProgress;
//
// Threads: all of it runs under the runtime's lock.

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

#include "base/cuda/emulated/nccl/pre_mul.h"
#include "base/cuda/emulated/runtime/api_call.h"
#include "base/cuda/emulated/runtime/operation.h"
#include "base/cuda/emulated/runtime/world.h"

namespace emulated_cuda {

class Collective;
struct Comm;
struct Transfer;

// One ncclCommSplit() that all ranks call.
struct Split {
  struct Child {
    int color = 0;
    int key = 0;
    int parent_rank = 0;
    std::shared_ptr<Comm> comm;  // null: NCCL_SPLIT_NOCOLOR
  };
  std::vector<Child> children;
};

// State that the ranks of a communicator share.
struct Clique {
  int ranks = 0;
  int joined = 0;
  // Whether the ranks differed: hardware would hang.
  bool is_broken = false;
  // Collectives begun by some ranks, whose operations own them; the key is
  // their number in the order of the calls.
  std::map<std::uint64_t, std::weak_ptr<Collective>> collectives;
  std::map<std::uint64_t, Split> splits;
  // Sends and receives that wait for their counterpart; the key is (from, to).
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
  // Null: a split that other ranks have not joined, or a lost communicator.
  std::shared_ptr<Clique> clique;
  int rank = 0;
  int device = 0;
  bool is_blocking = true;
  bool is_ready = false;
  bool is_finalizing = false;
  bool is_aborted = false;
  ncclResult_t error = ncclSuccess;  // set by FailComm()
  std::uint64_t next_collective = 0;
  std::uint64_t next_split = 0;
  // Number of queries that return ncclInProgress before the next step.
  std::uint64_t polls_left = 0;
  std::vector<Deferred> deferred;
  // This rank's operations that wait for peers.
  std::vector<std::weak_ptr<Operation>> started;
  std::map<const void*, std::size_t> registered;  // value: bytes
  PreMulOperators operators;
};

struct Nccl : Extension {
  std::vector<std::string> Leaks() const override;

  std::map<std::uint64_t, std::shared_ptr<Clique>> cliques;
  std::map<const void*, std::shared_ptr<Comm>> comms;
  std::uint64_t next_id = 1;
  std::size_t registrations = 0;  // since Reset()
  // Number of calls until the one that FailCollective() makes fail; 0: none.
  std::uint64_t calls_to_failure = 0;
  ncclResult_t failure = ncclSuccess;
  // Number of communicators until the one that LoseComm() loses; 0: none.
  std::uint64_t comms_to_loss = 0;
  std::string last_error;
};

Nccl& TheNccl();
std::shared_ptr<Comm> FindComm(ncclComm_t handle);
ncclComm_t HandleOf(const std::shared_ptr<Comm>& comm);

// Advances a communicator's background work by one step. Returns true if none
// is left.
bool Poll(Comm& comm);

// Stores the text for ncclGetLastError() and returns the error.
ncclResult_t Refuse(ncclResult_t error, const std::string& text);

// Returns ncclSuccess if `comm` may be used now, otherwise the reason.
ncclResult_t CheckUsable(const Comm& comm);

// Ends a call that began work for `comm`: waits, or returns ncclInProgress, as
// the communicator is configured.
ncclResult_t Conclude(const std::shared_ptr<Comm>& comm, const CallSite& site);

// Removes `registration`; reports a range that was freed before.
void Deregister(Comm& comm, const void* registration);

// Returns whether `comm` has incomplete operations.
bool HasPending(const Comm& comm);

ncclResult_t ResultOf(cudaError_t error);

#define EMULATED_NCCL_CALL()                                           \
  ::emulated_cuda::ApiCall call(__func__, __builtin_frame_address(0)); \
  if (call.refused() != cudaSuccess) {                                 \
    return ::emulated_cuda::ResultOf(call.refused());                  \
  }

// For calls that also work on a broken device.
#define EMULATED_NCCL_CALL_ANYWAY()                                   \
  ::emulated_cuda::ApiCall call(__func__, __builtin_frame_address(0), \
                                ::emulated_cuda::OnBroken::kWorks);   \
  if (call.refused() != cudaSuccess) {                                \
    return ::emulated_cuda::ResultOf(call.refused());                 \
  }

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_NCCL_COMMUNICATOR_H_
