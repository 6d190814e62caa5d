// Knobs of the emulated NCCL, for tests. It defines the functions of <nccl.h>
// for ranks of one process, on the emulated streams; emulated_cuda.h has the
// seed and the rest.
//
//   emulated_cuda::FailComm(comm, ncclRemoteError);
//   ncclResult_t state;
//   ncclCommGetAsyncError(comm, &state);  // ncclRemoteError until its abort
//
// A collective is one step, taken when all ranks' operations have come to the
// head of their streams; a rank that does not come leaves the others pending.
// Ranks that disagree in kind, count, type, operator or root are reported, and
// stay pending. Sums are made in rank order and rounded after each term; an
// average multiplies each term by 1/ranks first, as NCCL does. With blocking =
// 0 calls answer ncclInProgress as the seed decides, and what they began is not
// on its stream before ncclCommGetAsyncError() says ncclSuccess.
//
// Not there: windows, shrinking, revoking, FP8 types, several processes.

#ifndef BASE_CUDA_EMULATED_EMULATED_NCCL_H_
#define BASE_CUDA_EMULATED_EMULATED_NCCL_H_

#include <nccl.h>

#include <cstddef>
#include <cstdint>

namespace emulated_cuda {

// From now on `comm` answers `error`, as after the death of a peer.
void FailComm(ncclComm_t comm, ncclResult_t error);

// The same for the communicator of the `number`th collective, send or receive
// that is called from now on, counted from 1 over all of them: that one says
// ncclSuccess, and nothing comes of it. Until emulated_cuda::Reset().
void FailCollective(std::uint64_t number, ncclResult_t error);

// The `number`th communicator that ncclCommInitRank() or its like makes from
// now on, counted from 1, is never ready, nor are its peers. Until Reset().
void LoseComm(std::uint64_t number);

// Of ncclCommRegister(): ranges that are registered now, of all communicators,
// and how many have ever been since Reset(). One that is freed before it is
// deregistered is a problem.
struct Registrations {
  std::size_t now = 0;
  std::size_t ever = 0;
};
Registrations RegisteredRanges();

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_EMULATED_NCCL_H_
