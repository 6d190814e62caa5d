// Frames in a ring of shared memory, from one writer to one reader.
//
//   RingWriter writer(&head, data, ring_bytes);
//   RingReader reader(&head, data, ring_bytes);
//   if (writer.Put(frame, payload) == RingWriter::Result::kDone) {
//     writer.Publish();
//   }
//   while (reader.Next() == RingReader::Result::kFrame) {
//     Show(reader.frame(), reader.payload());
//     reader.Pop();
//   }
//   reader.Release();
//
// A record is a header of 64 bytes, then the payload, rounded up to 64:
// payloads are contiguous and aligned for any type. If one would cross the end
// of the ring, the rest is skipped.
//
// Positions count bytes since the ring was created. Each side keeps its own in
// private memory and only publishes it to the other; it validates positions
// from the other side. So a peer that writes garbage is detected, and cannot
// make this side read or write outside the ring.
//
// Threads: one for each end, except for the functions marked "Any thread".

#ifndef COMM_SHM_RING_H_
#define COMM_SHM_RING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "comm/link.h"

namespace troupe::comm {

inline constexpr std::size_t kCacheLineBytes = 64;

// Memory that both ends access; all zero at the beginning.
struct RingHead {
  // Set by the writer.
  alignas(kCacheLineBytes) std::atomic<std::uint64_t> published;
  // Set by the reader.
  alignas(kCacheLineBytes) std::atomic<std::uint64_t> released;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// Returns the number of bytes that a payload takes up in the ring.
constexpr std::size_t RecordBytes(std::size_t payload_bytes) {
  return kCacheLineBytes + (payload_bytes + kCacheLineBytes - 1) /
                               kCacheLineBytes * kCacheLineBytes;
}

// A ring has room for the longest frame, at whatever position it begins.
inline constexpr std::size_t kRingBytesMin = 4 << 20;
inline constexpr std::size_t kRingBytesMax = 1 << 30;
static_assert(kRingBytesMin >= 2 * RecordBytes(kFrameBytesMax));

class RingWriter {
 public:
  enum class Result { kDone, kFull, kBroken };

  // `data` has `bytes`, a power of two from kRingBytesMin to kRingBytesMax.
  RingWriter(RingHead* head, char* data, std::size_t bytes);

  // Copies a frame into the ring. kBroken: the reader published an invalid
  // position.
  Result Put(const Frame& frame, const char* payload);
  // Publishes the frames to the reader.
  void Publish();
  std::size_t unpublished_bytes() const { return position() - published_; }

  // Any thread: returns whether a frame of this size would fit now.
  bool HasRoom(std::size_t payload_bytes) const;

 private:
  std::uint64_t position() const {
    return position_.load(std::memory_order_relaxed);
  }
  // Returns the bytes up to the end of the record, skipped ones included.
  std::size_t Needed(std::size_t payload_bytes, std::uint64_t position) const;

  RingHead* const head_;
  char* const data_;
  const std::size_t bytes_;
  std::atomic<std::uint64_t> position_{0};
  std::uint64_t published_ = 0;
  std::uint64_t released_ = 0;  // last read position, checked
};

class RingReader {
 public:
  enum class Result { kFrame, kNothing, kBroken };

  RingReader(RingHead* head, const char* data, std::size_t bytes);

  // Returns the same frame until Pop(). kBroken: the writer published an
  // invalid position, or an invalid record.
  Result Next();
  const Frame& frame() const { return frame_; }
  const char* payload() const { return payload_; }
  void Pop();
  // Publishes to the writer that popped frames may be overwritten.
  void Release();
  std::size_t unreleased_bytes() const { return position() - released_; }

  // Any thread: returns whether Next() has a frame.
  bool HasFrame() const {
    return head_->published.load(std::memory_order_seq_cst) != position();
  }

 private:
  std::uint64_t position() const {
    return position_.load(std::memory_order_relaxed);
  }

  RingHead* const head_;
  const char* const data_;
  const std::size_t bytes_;
  std::atomic<std::uint64_t> position_{0};
  std::uint64_t published_ = 0;  // last read position, checked
  std::uint64_t released_ = 0;
  Frame frame_;
  const char* payload_ = nullptr;
};

}  // namespace troupe::comm

#endif  // COMM_SHM_RING_H_
