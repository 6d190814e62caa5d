// This process among those that mpirun has started, and its links to the
// others over Open MPI: whatever fabric that knows carries the frames.
//
//   absl::StatusOr<std::unique_ptr<MpiProcess>> mpi = MpiProcess::Start();
//   auto links = (*mpi)->MakeLinks(/*generation=*/0);
//   (*links)[(*mpi)->processes() - 1]->Send(frame, payload, /*done=*/nullptr,
//                                           /*copy=*/true);
//
// MPI begins when all processes have asked it to, and knows no time-out; so it
// does that in a thread of its own, left behind where they do not come.
//
// Frames: one message each where the payload has up to kMpiPackedBytesMax
// bytes; longer ones are two messages, the head and the payload, which goes
// straight to where FrameSink::Place() says. The sender copies what it sends:
// MPI cannot take back a send, and a link must be able to let go of a payload
// at any time.
//
// MPI has no descriptor to sleep on. Whoever sleeps wakes up after 20 us while
// there is traffic, and less and less often without, down to once a millisecond
// (2 to 3 % of a core).
//
// MPI does not say that a process is dead; the control plane does, by Close(),
// and whoever has it calls GiveUp().
// Memory that MPI was given for a payload that is coming it does not give back
// before the payload is there. Where that stays away long after Close(), the
// process uses MPI no more, and all its links are lost. A job that starts again
// then starts new processes.
//
// Threads: any; calls of MPI are made one at a time.

#ifndef COMM_MPI_MPI_PROCESS_H_
#define COMM_MPI_MPI_PROCESS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "comm/link.h"

namespace troupe::comm {

namespace internal {
class MpiContext;
}

inline constexpr std::size_t kMpiPackedBytesMax = std::size_t{16} << 10;
inline constexpr std::uint32_t kMpiGenerationMax = 1 << 20;

class MpiProcess {
 public:
  // Begins MPI, unless the program has; all processes of the job call it. MPI
  // ends with the last link, if it began here: that waits for all processes.
  // It waits for them until `timeout`, and while `check` (which may be null)
  // says that they may still come.
  //   kUnimplemented: this build has no MPI; says what to install.
  //   kNotFound: this machine has no Open MPI.
  //   kFailedPrecondition: MPI began with MPI_THREAD_SINGLE or _FUNNELED.
  //   kDeadlineExceeded: they did not come; or what `check` said.
  static absl::StatusOr<std::unique_ptr<MpiProcess>> Start(
      absl::Duration timeout = absl::Seconds(30),
      const std::function<absl::Status()>& check = nullptr);
  ~MpiProcess();

  // "Open MPI v4.1.4", without beginning it. Errors: the first two of Start().
  static absl::StatusOr<std::string> Version();

  // Its number, in MPI_COMM_WORLD, and how many there are.
  int process() const;
  int processes() const;

  // A link to each process, null for this one. Links of one generation talk to
  // those of the same: each has its own number, up to kMpiGenerationMax.
  absl::StatusOr<std::vector<std::unique_ptr<Link>>> MakeLinks(
      std::uint32_t generation);

  // The job has failed: its links are lost, with `why`, and MPI is not ended,
  // which would wait for processes that are dead. This process can use it no
  // more.
  void GiveUp(const absl::Status& why);

 private:
  explicit MpiProcess(std::shared_ptr<internal::MpiContext> context);

  const std::shared_ptr<internal::MpiContext> context_;
};

}  // namespace troupe::comm

#endif  // COMM_MPI_MPI_PROCESS_H_
