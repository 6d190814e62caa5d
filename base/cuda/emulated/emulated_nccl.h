// Controls of the emulated NCCL, for tests. It implements the functions of
// <nccl.h> for ranks of one process, on the emulated streams; emulated_cuda.h
// has the seed and the other options.
//
//   emulated_cuda::FailComm(comm, ncclRemoteError);
//   ncclResult_t state;
//   ncclCommGetAsyncError(comm, &state);  // ncclRemoteError until its abort
//
// A collective is one step, taken when the operations of all ranks are at the
// head of their streams; a missing rank leaves the others pending. Ranks that
// differ in kind, count, type, operator or root are reported, and stay pending.
// Sums are made in rank order and rounded after each term; an average
// multiplies each term by 1/ranks first, as NCCL does. With blocking = 0 calls
// return ncclInProgress as the seed decides, and their work is not on its
// stream before ncclCommGetAsyncError() reports ncclSuccess.
//
// Not supported: windows, shrinking, revoking, FP8 types, several processes.

#ifndef BASE_CUDA_EMULATED_EMULATED_NCCL_H_
#define BASE_CUDA_EMULATED_EMULATED_NCCL_H_

#include <nccl.h>

#include <cstddef>
#include <cstdint>

namespace emulated_cuda {

// Makes `comm` return `error` from now on, as after the death of a peer.
void FailComm(ncclComm_t comm, ncclResult_t error);

// Does the same to the communicator of the `number`th collective, send or
// receive that is called from now on, counted from 1 over all of them: that
// call returns ncclSuccess, but its work never runs. Lasts until
// emulated_cuda::Reset().
void FailCollective(std::uint64_t number, ncclResult_t error);

// Makes the `number`th communicator that ncclCommInitRank() or its like makes
// from now on, counted from 1, never become ready, nor its peers. Lasts until
// Reset().
void LoseComm(std::uint64_t number);

// Number of ranges that are registered by ncclCommRegister() now, in all
// communicators, and that were ever registered since Reset(). A range that is
// freed before it is deregistered is a problem.
struct Registrations {
  std::size_t now = 0;
  std::size_t ever = 0;
};
Registrations RegisteredRanges();

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_EMULATED_NCCL_H_
