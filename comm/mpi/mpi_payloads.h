// The long payloads that a link over MPI is receiving. One that MPI reads from
// the sender's tensor may be used only after the sender has confirmed that the
// memory was still its own then (mpi_sends.h).
//
//   MpiPayloads payloads(context, /*rank=*/0, /*tag=*/1);
//   if (payloads.HasRoom()) {
//     TROUPE_RETURN_IF_ERROR(
//         payloads.Begin(frame, place, /*confirms=*/true));
//   }
//   TROUPE_ASSIGN_OR_RETURN(const auto state, payloads.Test());
//   if (state == MpiPayloads::State::kWhole) Use(payloads.oldest().data);
//
// While a confirmation is due, the next payload is received: a sender that
// computes confirms late.
//
// Threads: one at a time, the link's reader.

#ifndef COMM_MPI_MPI_PAYLOADS_H_
#define COMM_MPI_MPI_PAYLOADS_H_

#include <array>
#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "comm/link.h"
#include "comm/mpi/mpi_context.h"

namespace troupe::comm::internal {

class MpiPayloads {
 public:
  enum class State {
    kDue,        // not complete, or there is none
    kWhole,      // the payload may be used
    kWrongSize,  // its size is not the one that its frame announced
    kRevoked,    // its sender gave it up, with these last words
  };
  struct Payload {
    Frame frame;
    char* data = nullptr;
    int bytes = 0;  // size that has been received
    bool has_arrived = false;
    bool is_confirmed = false;  // or needs no confirmation
    bool is_revoked = false;
    std::shared_ptr<char[]> last_words;  // receives the confirmation
    MPI_Request payload = nullptr, confirmation = nullptr;
  };

  // Receives under `tag`, and confirmations under the next one.
  MpiPayloads(std::shared_ptr<MpiContext> context, int rank, int tag);
  MpiPayloads(const MpiPayloads&) = delete;
  MpiPayloads& operator=(const MpiPayloads&) = delete;

  bool due() const { return due_ > 0; }
  // Returns whether another payload can begin. None can behind one that has no
  // place: its frame may announce the next one.
  bool HasRoom() const;
  // Starts to receive the payload of `frame` into `place`; null: into memory of
  // this object. With `confirms` a confirmation follows.
  absl::Status Begin(const Frame& frame, char* place, bool confirms);
  // Returns the state of the oldest payload. After another state than kDue it
  // is oldest() until the next Begin(), and the next Test() is of the one
  // behind it. One that is revoked stays, since its place may still be in use.
  absl::StatusOr<State> Test();
  const Payload& oldest() const { return payloads_[oldest_]; }

  // Ends the use of all places: cancels receives or waits for payloads, for
  // kMpiLinkEndMax at most. If MPI still holds memory then, the context is
  // broken, with `why`.
  void End(const absl::Status& why);

 private:
  static constexpr std::size_t kPayloads = 2;

  void EndOne(Payload* payload, const absl::Status& why);

  const std::shared_ptr<MpiContext> context_;
  const int rank_;
  const int tag_;
  std::array<Payload, kPayloads> payloads_;  // a ring
  std::size_t oldest_ = 0, next_ = 0;
  std::size_t due_ = 0;
  std::shared_ptr<char[]> own_;
  std::size_t own_bytes_ = 0;
};

}  // namespace troupe::comm::internal

#endif  // COMM_MPI_MPI_PAYLOADS_H_
