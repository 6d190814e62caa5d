// The frames that a link over MPI is sending, as a ring of messages. Long
// payloads are sent from the memory of their tensors.
//
//   MpiSends sends(context, /*rank=*/1, /*tag=*/0);
//   TROUPE_ASSIGN_OR_RETURN(const bool room, sends.HasRoom());
//   if (room) {
//     TROUPE_RETURN_IF_ERROR(
//         sends.Begin(frame, payload, /*stays=*/true, &done));
//   }
//   TROUPE_RETURN_IF_ERROR(sends.Release());  // again and again; calls `done`
//   sends.End(last_words, why);               // also calls it
//
// A frame with a payload of up to kMpiPackedBytesMax bytes is one message, a
// copy, under `tag`. A longer one is two: the header under `tag`, the payload
// under the next tag; up to kMpiCopiedBytesMax it is copied, too. Above that,
// MPI reads it from the tensor, and an empty message under a third tag confirms
// that it has read all of it. MPI keeps the order within each tag.
//
// Why it is confirmed: MPI cannot cancel a send. If a process is stopped while
// its peer gives up the link, it may read a payload after that, when the memory
// is in use for something else. It then finds the peer's last words in place of
// the confirmation, and drops the payload (mpi_payloads.h).
//
// Threads: one at a time, the link's writer.

#ifndef COMM_MPI_MPI_SENDS_H_
#define COMM_MPI_MPI_SENDS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "comm/link.h"
#include "comm/mpi/mpi_context.h"

namespace troupe::comm::internal {

// Limit on the wait for a payload in transit when a link ends.
inline constexpr absl::Duration kMpiLinkEndMax = absl::Milliseconds(100);

// Size up to which a payload is copied: a copy takes less time than to wait for
// a confirmation.
inline constexpr std::size_t kMpiCopiedBytesMax = std::size_t{64} << 10;
// Bit of Frame::bytes, as it is sent, that announces a confirmation.
inline constexpr std::uint32_t kMpiConfirmedBit = std::uint32_t{1} << 31;
static_assert(kFrameBytesMax < kMpiConfirmedBit);

class MpiSends {
 public:
  MpiSends(std::shared_ptr<MpiContext> context, int rank, int tag)
      : context_(std::move(context)), rank_(rank), tag_(tag) {}
  // Leaves unfinished messages, all of which are copies, to the context.
  ~MpiSends();
  MpiSends(const MpiSends&) = delete;
  MpiSends& operator=(const MpiSends&) = delete;

  // Returns whether a frame can begin.
  absl::StatusOr<bool> HasRoom();
  // Begins to send a frame; call it if there is room. A payload that is long
  // and `stays` is not copied: `*done` is taken over, set to null, and called
  // when MPI has read all of the payload. So is that of a later frame, since
  // frames are released in order.
  absl::Status Begin(const Frame& frame, const char* payload, bool stays,
                     SendDone** done);
  // Confirms and releases payloads that MPI has read.
  absl::Status Release();
  // Returns whether any frame is not released.
  bool holds() const { return held_ > 0; }

  // Sends a message behind all frames.
  void SendLastWords(absl::string_view words) { SendWords(words, tag_); }
  // Releases all payloads, after it has waited for MPI to read them, for
  // kMpiLinkEndMax at most. If it has not read one by then, the receiver gets
  // `last_words` in place of the confirmation, and the context is broken, with
  // `why`: MPI might read the memory later.
  void End(absl::string_view last_words, const absl::Status& why);

 private:
  static constexpr std::size_t kSlots = 16;

  // A message that MPI may still be sending.
  struct Message {
    MPI_Request request = nullptr;
    bool due = false;
  };
  struct Slot {
    std::shared_ptr<char[]> buffer;  // header and, if it is copied, payload
    std::size_t capacity = 0;
    Message head, payload, confirmation;
    bool confirms = false;
    SendDone* done = nullptr;  // taken over
  };

  absl::Status Send(const char* bytes, std::size_t count, int tag,
                    Message* message);
  // Returns whether MPI has sent the message.
  absl::StatusOr<bool> IsSent(Message* message);
  absl::StatusOr<bool> AreSent(Slot* slot);
  void SendWords(absl::string_view words, int tag);

  const std::shared_ptr<MpiContext> context_;
  const int rank_;
  const int tag_;
  std::array<Slot, kSlots> slots_;  // a ring
  std::size_t next_ = 0;
  // Number of frames before `next_` that are not released.
  std::size_t held_ = 0;
};

}  // namespace troupe::comm::internal

#endif  // COMM_MPI_MPI_SENDS_H_
