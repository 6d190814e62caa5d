// ncclGroupStart() to ncclGroupEnd(): calls are collected, and begin together.
//
//     if (const auto error = CheckUsable(*comm)) return error;
//     return Submit(comm, *stream, call, site);
//
// Threads: a group belongs to its thread; under the runtime's lock.

#ifndef BASE_CUDA_EMULATED_NCCL_GROUP_H_
#define BASE_CUDA_EMULATED_NCCL_GROUP_H_

#include <nccl.h>

#include <memory>

#include "base/cuda/emulated/nccl/communicator.h"
#include "base/cuda/emulated/nccl/exchanges.h"

namespace emulated_cuda {

bool InGroup();

// Begins a collective, a send or a receive: now, or at the end of the group.
ncclResult_t Submit(const std::shared_ptr<Comm>& comm, Stream& stream,
                    const WorkCall& call, const CallSite& site);

// Waits for a communicator that was just made: now, or at the end of the group.
ncclResult_t SubmitNew(const std::shared_ptr<Comm>& comm, const CallSite& site);

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_NCCL_GROUP_H_
