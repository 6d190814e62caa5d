// The communicator of one rank, an ncclComm_t whose calls never block
// (blocking = 0): a call that returns ncclInProgress is complete as soon as
// State() returns another result.
//
//   NcclComm comm;
//   ncclResult_t state = comm.Init(size, id, rank);
//   while (state == ncclInProgress) state = comm.State();
//   ncclAllReduce(from, to, count, ncclFloat, ncclSum, comm.get(), stream);
//   NcclComm::Finish(comm.Release());
//
// The destructor leaves the communicator alone: Finish() and Abort() end it,
// without the lock that protects this object, since they may take long.
//
// Threads: one at a time, except for Finish() and Abort().

#ifndef COMM_NCCL_NCCL_COMM_H_
#define COMM_NCCL_NCCL_COMM_H_

#include <nccl.h>

#include <deque>
#include <utility>

#include "nn/tensor/tensor.h"

namespace troupe::comm::internal {

class NcclComm {
 public:
  NcclComm() = default;
  NcclComm(const NcclComm&) = delete;
  NcclComm& operator=(const NcclComm&) = delete;

  // Begins to make the communicator of rank `rank` of `size`.
  ncclResult_t Init(int size, const ncclUniqueId& id, int rank);

  // Returns the communicator; null before Init() and after Release().
  ncclComm_t get() const { return comm_; }
  // Returns how the last call has ended, or ncclInProgress, or an asynchronous
  // error. get() is not null.
  ncclResult_t State() const;

  // Registers memory with NCCL. What NCCL refuses is used without that, and is
  // no error.
  ncclResult_t Register(const nn::Tensor& range);
  // Undoes all calls of Register().
  void Deregister();

  // Returns the communicator, which the caller must end.
  ncclComm_t Release() { return std::exchange(comm_, nullptr); }
  // Finalizes a communicator whose work is complete, for which it waits two
  // seconds at most; aborts it if that fails.
  static void Finish(ncclComm_t comm);
  // Ends a communicator and its kernels at once.
  static void Abort(ncclComm_t comm) { ncclCommAbort(comm); }

 private:
  ncclComm_t comm_ = nullptr;
  // Handles of ncclCommRegister(); a deque, since NCCL may write to an element
  // later.
  std::deque<void*> registered_;
};

}  // namespace troupe::comm::internal

#endif  // COMM_NCCL_NCCL_COMM_H_
