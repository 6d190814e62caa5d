#include "comm/mpi/mpi_context.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "comm/mpi/bounded_call.h"

namespace troupe::comm::internal {

absl::StatusOr<std::shared_ptr<MpiContext>> MpiContext::Start() {
  TROUPE_ASSIGN_OR_RETURN(const MpiLibrary mpi, MpiLibrary::Load());
  std::shared_ptr<MpiContext> context(new MpiContext(mpi));
  TROUPE_RETURN_IF_ERROR(context->Begin());
  return context;
}

absl::Status MpiContext::Begin() {
  int initialized = 0;
  int finalized = 0;
  TROUPE_RETURN_IF_ERROR(
      mpi_.ToStatus(mpi_.Finalized(&finalized), "MPI_Finalized"));
  if (finalized != 0) {
    return absl::FailedPreconditionError(
        "MPI has ended in this process, and begins only once; call "
        "MPI_Finalize() after the last use of MPI");
  }
  TROUPE_RETURN_IF_ERROR(
      mpi_.ToStatus(mpi_.Initialized(&initialized), "MPI_Initialized"));
  int level = MPI_THREAD_SINGLE;
  if (initialized != 0) {
    TROUPE_RETURN_IF_ERROR(
        mpi_.ToStatus(mpi_.Query_thread(&level), "MPI_Query_thread"));
  } else {
    // A longer message waits for an answer of its receiver before it is copied.
    // Open MPI's own limit within a host is less than a frame of 4 KB. A value
    // that the user has set counts.
    ::setenv(kMpiEagerVariable, absl::StrCat(kMpiEagerBytes).c_str(),
             /*overwrite=*/0);
    TROUPE_RETURN_IF_ERROR(mpi_.ToStatus(
        mpi_.Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level),
        "MPI_Init_thread"));
    began_here_ = true;
  }
  if (level < MPI_THREAD_SERIALIZED) {
    return absl::FailedPreconditionError(
        "MPI began without threads; call MPI_Init_thread with "
        "MPI_THREAD_SERIALIZED");
  }
  // A duplicated communicator: its tags cannot collide with those of others.
  TROUPE_RETURN_IF_ERROR(
      mpi_.ToStatus(mpi_.Comm_dup(mpi_.world, &comm_), "MPI_Comm_dup"));
  mpi_.Comm_set_errhandler(comm_, mpi_.errors_return);
  mpi_.Comm_rank(comm_, &rank_);
  mpi_.Comm_size(comm_, &size_);
  return absl::OkStatus();
}

MpiContext::~MpiContext() {
  TestAbandoned();
  absl::MutexLock lock(&mutex_);
  if (!began_here_ || !broken_.ok()) return;
  // MPI may still write into abandoned memory.
  const auto kept =
      std::make_shared<std::vector<Abandoned>>(std::move(abandoned_));
  CallWithin([mpi = mpi_, kept] { mpi.Finalize(); }, kMpiEndMax);
}

absl::Status MpiContext::Send(const void* bytes, std::size_t count, int rank,
                              int tag, MPI_Request* request) {
  absl::MutexLock lock(&mutex_);
  if (!broken_.ok()) return broken_;
  return mpi_.ToStatus(mpi_.Isend(bytes, static_cast<int>(count), mpi_.byte,
                                  rank, tag, comm_, request),
                       "MPI_Isend");
}

absl::Status MpiContext::Receive(void* bytes, std::size_t count, int rank,
                                 int tag, MPI_Request* request) {
  absl::MutexLock lock(&mutex_);
  if (!broken_.ok()) return broken_;
  return mpi_.ToStatus(mpi_.Irecv(bytes, static_cast<int>(count), mpi_.byte,
                                  rank, tag, comm_, request),
                       "MPI_Irecv");
}

absl::StatusOr<bool> MpiContext::Test(MPI_Request* request, int* count) {
  absl::MutexLock lock(&mutex_);
  if (!broken_.ok()) return broken_;
  int done = 0;
  MPI_Status status;
  TROUPE_RETURN_IF_ERROR(
      mpi_.ToStatus(mpi_.Test(request, &done, &status), "MPI_Test"));
  if (done != 0 && count != nullptr) {
    TROUPE_RETURN_IF_ERROR(mpi_.ToStatus(
        mpi_.Get_count(&status, mpi_.byte, count), "MPI_Get_count"));
  }
  return done != 0;
}

void MpiContext::Cancel(MPI_Request* request) {
  absl::MutexLock lock(&mutex_);
  if (broken_.ok()) mpi_.Cancel(request);
}

void MpiContext::Abandon(MPI_Request request, std::shared_ptr<char[]> memory) {
  absl::MutexLock lock(&mutex_);
  abandoned_.push_back({request, std::move(memory)});
  has_abandoned_.store(true, std::memory_order_release);
}

bool MpiContext::TestAbandoned() {
  if (!has_abandoned_.load(std::memory_order_acquire)) return false;
  absl::MutexLock lock(&mutex_);
  const auto done = [this](Abandoned& each) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    int flag = 0;
    return broken_.ok() &&
           mpi_.Test(&each.request, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS &&
           flag != 0;
  };
  abandoned_.erase(std::remove_if(abandoned_.begin(), abandoned_.end(), done),
                   abandoned_.end());
  has_abandoned_.store(!abandoned_.empty(), std::memory_order_release);
  return !abandoned_.empty();
}

void MpiContext::Break(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  if (broken_.ok()) broken_ = why;
}

}  // namespace troupe::comm::internal
