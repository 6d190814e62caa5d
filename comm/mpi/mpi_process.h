// This process as one that mpirun has started, and its links to the others over
// Open MPI, on any network that Open MPI supports.
//
//   absl::StatusOr<std::unique_ptr<MpiProcess>> mpi = MpiProcess::Start();
//   auto links = (*mpi)->MakeLinks(/*generation=*/0);
//   (*links)[(*mpi)->processes() - 1]->Send(frame, payload, /*done=*/nullptr,
//                                           /*copy=*/true);
//
// MPI_Init waits for all processes, without a time-out; so it runs in a thread
// of its own, which is left behind if they do not arrive.
//
// Frames: one message each if the payload has up to kMpiPackedBytesMax bytes;
// MPI sends these at once within a host (docs/transports.md).
// Longer ones are two messages, the header and the payload, which is received
// straight into the memory from FrameSink::Place(). A payload of more than 64
// KiB is not copied: MPI reads it from the tensor. MPI cannot cancel a send, so
// that a link which ends waits up to 100 ms for its peer to receive such
// payloads. After that it gives the memory back, the process uses MPI no more,
// and all its links are lost; the peer does not use the payload, even if it
// receives it later (mpi_sends.h).
//
// MPI has no descriptor to sleep on. A sleeping thread wakes up after 20 us
// while there is traffic, and less and less often without, down to once a
// millisecond (2 to 3 % of a core).
//
// MPI does not report that a process is dead. The control plane does: it calls
// Close() for the link, and the job calls GiveUp(). MPI returns memory for a
// payload in transit only after the payload has arrived. If it does not arrive
// long after Close(), the process uses MPI no more, and all its links are lost.
// A job that restarts then starts new processes.
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
  // Begins MPI, unless the program has; all processes of the job call it. If it
  // began here, MPI ends with the last link, which waits for all processes.
  // Start() waits for them until `timeout`, and while `check` (which may be
  // null) returns ok: they may still come.
  //   kUnimplemented: this build has no MPI; names what to install.
  //   kNotFound: this machine has no Open MPI.
  //   kFailedPrecondition: MPI began with MPI_THREAD_SINGLE or _FUNNELED.
  //   kDeadlineExceeded: they did not arrive; or the error of `check`.
  static absl::StatusOr<std::unique_ptr<MpiProcess>> Start(
      absl::Duration timeout = absl::Seconds(30),
      const std::function<absl::Status()>& check = nullptr);
  ~MpiProcess();

  // Returns "Open MPI v4.1.4", without beginning MPI. Errors: the first two of
  // Start().
  static absl::StatusOr<std::string> Version();

  // Return the number of this process in MPI_COMM_WORLD, and of all processes.
  int process() const;
  int processes() const;

  // Returns a link to each process, null for this one. Links connect to those
  // of the same generation; each has its own number, up to kMpiGenerationMax.
  absl::StatusOr<std::vector<std::unique_ptr<Link>>> MakeLinks(
      std::uint32_t generation);

  // Gives up MPI after the job has failed: its links are lost, with `why`, and
  // MPI is not ended, which would wait for dead processes. This process cannot
  // use MPI any more.
  void GiveUp(const absl::Status& why);

 private:
  explicit MpiProcess(std::shared_ptr<internal::MpiContext> context);

  const std::shared_ptr<internal::MpiContext> context_;
};

}  // namespace troupe::comm

#endif  // COMM_MPI_MPI_PROCESS_H_
