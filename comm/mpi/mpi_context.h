// Wrapper of Open MPI for links: one call at a time, errors as absl::Status.
//
//   TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<MpiContext> mpi,
//                           MpiContext::Start());
//   char word[8] = "hello";
//   MPI_Request request;
//   absl::Status sent = mpi->Send(word, 8, /*rank=*/1, /*tag=*/0, &request);
//   TROUPE_ASSIGN_OR_RETURN(const bool done, mpi->Test(&request));
//
// Requests: memory passed to MPI stays unchanged until Test() returns true. A
// request that is no longer needed is abandoned: the context then keeps its
// memory.
//
// Threads: any.

#ifndef COMM_MPI_MPI_CONTEXT_H_
#define COMM_MPI_MPI_CONTEXT_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "comm/mpi/mpi_library.h"

namespace troupe::comm::internal {

// Limit on the wait for the other processes to end MPI, too.
inline constexpr absl::Duration kMpiEndMax = absl::Seconds(5);

// Size up to which Open MPI sends a message to a process of this host at once:
// every frame that is a single message (kMpiPackedBytesMax) fits.
inline constexpr char kMpiEagerVariable[] = "OMPI_MCA_btl_vader_eager_limit";
inline constexpr std::size_t kMpiEagerBytes = std::size_t{32} << 10;

class MpiContext {
 public:
  // See MpiProcess::Start().
  static absl::StatusOr<std::shared_ptr<MpiContext>> Start();
  // Ends MPI, if it began here and is not broken. That waits for all processes,
  // for kMpiEndMax at most.
  ~MpiContext();
  MpiContext(const MpiContext&) = delete;
  MpiContext& operator=(const MpiContext&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  absl::Status Send(const void* bytes, std::size_t count, int rank, int tag,
                    MPI_Request* request) ABSL_LOCKS_EXCLUDED(mutex_);
  // Starts to receive at most `count` bytes.
  absl::Status Receive(void* bytes, std::size_t count, int rank, int tag,
                       MPI_Request* request) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns whether the request is complete, true once only; `*count`, if not
  // null, receives the number of bytes received.
  absl::StatusOr<bool> Test(MPI_Request* request, int* count = nullptr)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Cancels a receive that has matched no message; Test() it afterwards.
  void Cancel(MPI_Request* request) ABSL_LOCKS_EXCLUDED(mutex_);

  // Keeps `memory` until the request is complete.
  void Abandon(MPI_Request request, std::shared_ptr<char[]> memory)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Releases the memory of completed abandoned requests. Returns true while any
  // are left.
  bool TestAbandoned() ABSL_LOCKS_EXCLUDED(mutex_);

  // Stops all use of MPI: it might write to memory that is in use for something
  // else. Every later call fails with `why`.
  void Break(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Abandoned {
    MPI_Request request;
    std::shared_ptr<char[]> memory;
  };

  explicit MpiContext(const MpiLibrary& mpi) : mpi_(mpi) {}
  absl::Status Begin();

  const MpiLibrary mpi_;
  bool began_here_ = false;
  MPI_Comm comm_ = nullptr;
  int rank_ = 0;
  int size_ = 1;

  absl::Mutex mutex_;  // held during all calls of MPI
  absl::Status broken_ ABSL_GUARDED_BY(mutex_);
  std::vector<Abandoned> abandoned_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> has_abandoned_{false};
};

}  // namespace troupe::comm::internal

#endif  // COMM_MPI_MPI_CONTEXT_H_
