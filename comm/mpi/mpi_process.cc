#include "comm/mpi/mpi_process.h"

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/check.h"
#include "comm/mpi/bounded_call.h"
#include "comm/mpi/mpi_context.h"
#include "comm/mpi/mpi_library.h"
#include "comm/mpi/mpi_link.h"

namespace troupe::comm {
namespace {

// Result of beginning MPI, shared with a thread that may be left behind.
class Begun {
 public:
  using Context = absl::StatusOr<std::shared_ptr<internal::MpiContext>>;

  void Set(Context context) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    context_ = std::move(context);
    if (abandoned_) BreakContext();
  }
  Context Take() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return std::move(context_);
  }
  // Leaves MPI open, now or once it has begun: ending it would also wait for
  // all.
  void Abandon() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    abandoned_ = true;
    BreakContext();
  }

 private:
  void BreakContext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!context_.ok()) return;
    (*context_)->Break(absl::CancelledError("nobody waits for MPI any more"));
  }

  absl::Mutex mutex_;
  bool abandoned_ ABSL_GUARDED_BY(mutex_) = false;
  Context context_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<MpiProcess>> MpiProcess::Start(
    absl::Duration timeout, const std::function<absl::Status()>& check) {
  const auto begun = std::make_shared<Begun>();
  absl::Status why = absl::DeadlineExceededError(absl::StrCat(
      "MPI has not begun within ", absl::FormatDuration(timeout),
      "; let every process that mpirun has started come to this call"));
  const bool done = internal::CallWithin(
      [begun] { begun->Set(internal::MpiContext::Start()); }, timeout,
      [&why, &check] {
        const absl::Status status = check ? check() : absl::OkStatus();
        if (!status.ok()) why = status;
        return status.ok();
      });
  if (!done) {
    begun->Abandon();
    return why;
  }
  TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<internal::MpiContext> context,
                          begun->Take());
  return std::unique_ptr<MpiProcess>(new MpiProcess(std::move(context)));
}

absl::StatusOr<std::string> MpiProcess::Version() {
  TROUPE_ASSIGN_OR_RETURN(const internal::MpiLibrary mpi,
                          internal::MpiLibrary::Load());
  return mpi.Version();
}

MpiProcess::MpiProcess(std::shared_ptr<internal::MpiContext> context)
    : context_(std::move(context)) {}
MpiProcess::~MpiProcess() = default;

int MpiProcess::process() const { return context_->rank(); }
int MpiProcess::processes() const { return context_->size(); }

absl::StatusOr<std::vector<std::unique_ptr<Link>>> MpiProcess::MakeLinks(
    std::uint32_t generation) {
  if (generation > kMpiGenerationMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "generation ", generation, " of MPI links is too high; the limit is ",
        kMpiGenerationMax));
  }
  std::vector<std::unique_ptr<Link>> links(processes());
  for (int other = 0; other < processes(); ++other) {
    if (other == process()) continue;
    internal::MpiLinkOptions options;
    options.peer = options.rank = other;
    options.send_tag = options.receive_tag = static_cast<int>(3 * generation);
    links[other] = internal::MakeMpiLink(context_, options);
  }
  return links;
}

void MpiProcess::GiveUp(const absl::Status& why) { context_->Break(why); }

}  // namespace troupe::comm
