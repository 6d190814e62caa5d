#include "comm/shm/shm_segment.h"

#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::comm {
namespace {

// Size of the header; the rings follow it, page-aligned.
constexpr std::size_t kHeadBytes = 4096;

bool IsRingSize(std::size_t bytes) {
  return bytes >= kRingBytesMin && bytes <= kRingBytesMax &&
         (bytes & (bytes - 1)) == 0;
}

}  // namespace

// All zero at the beginning, as a new file is.
struct ShmSegment::Head {
  RingHead rings[2];
  struct {
    alignas(kCacheLineBytes) std::atomic<std::uint32_t> sleeps;
    alignas(kCacheLineBytes) std::atomic<std::uint32_t> given_up;
  } sides[2];
};

absl::StatusOr<std::shared_ptr<ShmSegment>> ShmSegment::Create(
    std::size_t ring_bytes) {
  if (!IsRingSize(ring_bytes)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a ring of ", ring_bytes, " bytes; it must be a power of two from ",
        kRingBytesMin, " to ", kRingBytesMax));
  }
  TROUPE_ASSIGN_OR_RETURN(
      SealedFile file,
      SealedFile::Create("troupe-link", kHeadBytes + 2 * ring_bytes));
  return std::shared_ptr<ShmSegment>(new ShmSegment(std::move(file)));
}

absl::StatusOr<std::shared_ptr<ShmSegment>> ShmSegment::Open(
    base::OwnedFd file) {
  TROUPE_ASSIGN_OR_RETURN(SealedFile opened, SealedFile::Open(std::move(file)));
  const std::size_t bytes = opened.bytes();
  if (bytes < kHeadBytes || !IsRingSize((bytes - kHeadBytes) / 2) ||
      (bytes - kHeadBytes) % 2 != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the shared memory that came has ", bytes,
                     " bytes, which fits no "
                     "ring"));
  }
  return std::shared_ptr<ShmSegment>(new ShmSegment(std::move(opened)));
}

ShmSegment::ShmSegment(SealedFile file)
    : file_(std::move(file)), ring_bytes_((file_.bytes() - kHeadBytes) / 2) {
  static_assert(sizeof(Head) <= kHeadBytes);
}

ShmSegment::Head* ShmSegment::head() {
  return std::launder(reinterpret_cast<Head*>(file_.data()));
}

RingHead* ShmSegment::ring_head(int side) { return &head()->rings[side]; }

char* ShmSegment::ring_data(int side) {
  return file_.data() + kHeadBytes + side * ring_bytes_;
}

std::atomic<std::uint32_t>* ShmSegment::sleeps(int side) {
  return &head()->sides[side].sleeps;
}

std::atomic<std::uint32_t>* ShmSegment::given_up(int side) {
  return &head()->sides[side].given_up;
}

}  // namespace troupe::comm
