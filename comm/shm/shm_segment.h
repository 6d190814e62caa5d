// Memory that two processes share for a link: a ring for each direction.
//
//   TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<ShmSegment> mine,
//                           ShmSegment::Create(kRingBytesMin));
//   SendDescriptor(mine->fd());  // by SCM_RIGHTS; then, at the other end:
//   TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<ShmSegment> theirs,
//                           ShmSegment::Open(std::move(received)));
//
// It is a sealed file (sealed_file.h): it has no name, and no peer can shrink
// it while it is read.

#ifndef COMM_SHM_SHM_SEGMENT_H_
#define COMM_SHM_SHM_SEGMENT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "base/files/owned_fd.h"
#include "comm/shm/ring.h"
#include "comm/shm/sealed_file.h"

namespace troupe::comm {

class ShmSegment {
 public:
  // `ring_bytes` is a power of two from kRingBytesMin to kRingBytesMax.
  //   kInvalidArgument: it is not.
  //   kResourceExhausted and others: there is not enough memory.
  static absl::StatusOr<std::shared_ptr<ShmSegment>> Create(
      std::size_t ring_bytes);
  // Maps a segment of Create(), in this process or another.
  //   kInvalidArgument: it is another file, or its size is not sealed.
  static absl::StatusOr<std::shared_ptr<ShmSegment>> Open(base::OwnedFd file);

  ShmSegment(const ShmSegment&) = delete;
  ShmSegment& operator=(const ShmSegment&) = delete;

  int fd() const { return file_.fd(); }
  std::size_t ring_bytes() const { return ring_bytes_; }

  // `side` is 0 or 1: the end that writes the ring.
  RingHead* ring_head(int side);
  char* ring_data(int side);
  // Flag: not zero if a thread of this end sleeps, or is about to.
  std::atomic<std::uint32_t>* sleeps(int side);
  // Flag: not zero if this end has given up the link, so that memory lent by it
  // is no longer valid.
  std::atomic<std::uint32_t>* given_up(int side);

 private:
  struct Head;

  explicit ShmSegment(SealedFile file);
  Head* head();

  const SealedFile file_;
  const std::size_t ring_bytes_;
};

}  // namespace troupe::comm

#endif  // COMM_SHM_SHM_SEGMENT_H_
