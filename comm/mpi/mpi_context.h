// Open MPI as links use it: one call at a time, and errors as absl::Status.
//
//   TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<MpiContext> mpi,
//                           MpiContext::Start());
//   char word[8] = "hello";
//   MPI_Request request;
//   absl::Status sent = mpi->Send(word, 8, /*rank=*/1, /*tag=*/0, &request);
//   TROUPE_ASSIGN_OR_RETURN(const bool done, mpi->Test(&request));
//
// Requests: what is given to MPI stays as it is until Test() says true. What
// nobody waits for any more is abandoned: then the context keeps its memory.
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

// How long a process waits for the others to end MPI, too.
inline constexpr absl::Duration kMpiEndMax = absl::Seconds(5);

class MpiContext {
 public:
  // As MpiProcess::Start().
  static absl::StatusOr<std::shared_ptr<MpiContext>> Start();
  // Ends MPI, if it began here and is not broken. That waits for all processes,
  // as long as kMpiEndMax at most.
  ~MpiContext();
  MpiContext(const MpiContext&) = delete;
  MpiContext& operator=(const MpiContext&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  absl::Status Send(const void* bytes, std::size_t count, int rank, int tag,
                    MPI_Request* request) ABSL_LOCKS_EXCLUDED(mutex_);
  // At most `count` bytes.
  absl::Status Receive(void* bytes, std::size_t count, int rank, int tag,
                       MPI_Request* request) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether it is done, once; `*count`, where not null, is what was received.
  absl::StatusOr<bool> Test(MPI_Request* request, int* count = nullptr)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes back a receive that no message has reached; Test() it afterwards.
  void Cancel(MPI_Request* request) ABSL_LOCKS_EXCLUDED(mutex_);

  // Keeps `memory` until the request is done.
  void Abandon(MPI_Request request, std::shared_ptr<char[]> memory)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Lets go of what is done among those. True while there are any.
  bool TestAbandoned() ABSL_LOCKS_EXCLUDED(mutex_);

  // No call of MPI any more, from now on: it would touch memory that is not its
  // own. All that is asked for fails with `why`.
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

  absl::Mutex mutex_;  // around all calls of MPI
  absl::Status broken_ ABSL_GUARDED_BY(mutex_);
  std::vector<Abandoned> abandoned_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> has_abandoned_{false};
};

}  // namespace troupe::comm::internal

#endif  // COMM_MPI_MPI_CONTEXT_H_
