#include "comm/shm/ring.h"

#include <cstring>

namespace troupe::comm {
namespace {

enum Kind : std::uint64_t { kFrameRecord = 1, kSkipRecord = 2 };

struct RecordHead {
  std::uint64_t kind = 0;
  std::uint64_t unused = 0;
  Frame frame;
};
static_assert(sizeof(RecordHead) == kCacheLineBytes);

}  // namespace

RingWriter::RingWriter(RingHead* head, char* data, std::size_t bytes)
    : head_(head), data_(data), bytes_(bytes) {}

std::size_t RingWriter::Needed(std::size_t payload_bytes,
                               std::uint64_t position) const {
  const std::size_t record = RecordBytes(payload_bytes);
  const std::size_t to_end = bytes_ - (position & (bytes_ - 1));
  return record <= to_end ? record : to_end + record;
}

RingWriter::Result RingWriter::Put(const Frame& frame, const char* payload) {
  std::uint64_t at = position();
  const std::size_t needed = Needed(frame.bytes, at);
  if (at + needed - released_ > bytes_) {
    const std::uint64_t now = head_->released.load(std::memory_order_seq_cst);
    // The position must not move backwards, nor beyond what was published.
    if (now - released_ > published_ - released_) return Result::kBroken;
    if (now % kCacheLineBytes != 0) return Result::kBroken;
    released_ = now;
    if (at + needed - released_ > bytes_) return Result::kFull;
  }
  RecordHead record;
  const std::size_t skipped = needed - RecordBytes(frame.bytes);
  if (skipped > 0) {
    record.kind = kSkipRecord;
    std::memcpy(data_ + (at & (bytes_ - 1)), &record, sizeof(record));
    at += skipped;
  }
  record.kind = kFrameRecord;
  record.frame = frame;
  char* const place = data_ + (at & (bytes_ - 1));
  std::memcpy(place, &record, sizeof(record));
  if (frame.bytes > 0) {
    std::memcpy(place + sizeof(record), payload, frame.bytes);
  }
  position_.store(at + RecordBytes(frame.bytes), std::memory_order_relaxed);
  return Result::kDone;
}

void RingWriter::Publish() {
  published_ = position();
  // Sequentially consistent with the flag of a reader that is about to sleep.
  head_->published.store(published_, std::memory_order_seq_cst);
}

bool RingWriter::HasRoom(std::size_t payload_bytes) const {
  const std::uint64_t at = position();
  const std::uint64_t released =
      head_->released.load(std::memory_order_seq_cst);
  return at + Needed(payload_bytes, at) - released <= bytes_;
}

RingReader::RingReader(RingHead* head, const char* data, std::size_t bytes)
    : head_(head), data_(data), bytes_(bytes) {}

RingReader::Result RingReader::Next() {
  for (;;) {
    const std::uint64_t at = position();
    if (at == published_) {
      const std::uint64_t now =
          head_->published.load(std::memory_order_acquire);
      if (now == at) return Result::kNothing;
      if (now - at > bytes_ || now % kCacheLineBytes != 0) {
        return Result::kBroken;
      }
      published_ = now;
    }
    const std::size_t offset = at & (bytes_ - 1);
    const std::size_t to_end = bytes_ - offset;
    // A copy, so that the peer cannot change it after the check.
    RecordHead record;
    std::memcpy(&record, data_ + offset, sizeof(record));
    if (record.kind == kSkipRecord) {
      if (to_end >= published_ - at) return Result::kBroken;
      position_.store(at + to_end, std::memory_order_relaxed);
      continue;
    }
    if (record.kind != kFrameRecord || record.frame.bytes > kFrameBytesMax) {
      return Result::kBroken;
    }
    const std::size_t bytes = RecordBytes(record.frame.bytes);
    if (bytes > published_ - at || bytes > to_end) return Result::kBroken;
    frame_ = record.frame;
    payload_ = frame_.bytes > 0 ? data_ + offset + sizeof(record) : nullptr;
    return Result::kFrame;
  }
}

void RingReader::Pop() {
  position_.store(position() + RecordBytes(frame_.bytes),
                  std::memory_order_relaxed);
}

void RingReader::Release() {
  released_ = position();
  // Sequentially consistent with the flag of a writer that is about to sleep.
  head_->released.store(released_, std::memory_order_seq_cst);
}

}  // namespace troupe::comm
