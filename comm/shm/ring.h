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
// A record is a head of 64 bytes, then the payload, rounded up to 64: payloads
// lie in one piece and are aligned for anything. Where one would reach over the
// end of the ring, the rest is skipped.
//
// Positions count bytes from the beginning of the ring's life. Each side keeps
// its own in its own memory and only shows it to the other; what it reads from
// the other is checked. So a peer that writes nonsense is found out, and makes
// nobody read or write outside the ring.
//
// Threads: one for each end, but for the calls that say otherwise.

#ifndef COMM_SHM_RING_H_
#define COMM_SHM_RING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "comm/link.h"

namespace troupe::comm {

inline constexpr std::size_t kCacheLineBytes = 64;

// What both ends see; all zero at the beginning.
struct RingHead {
  alignas(kCacheLineBytes) std::atomic<std::uint64_t> published;  // by writer
  alignas(kCacheLineBytes) std::atomic<std::uint64_t> released;   // by reader
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// What a payload takes up in the ring.
constexpr std::size_t RecordBytes(std::size_t payload_bytes) {
  return kCacheLineBytes + (payload_bytes + kCacheLineBytes - 1) /
                               kCacheLineBytes * kCacheLineBytes;
}

// A ring has room for the longest frame wherever it would begin.
inline constexpr std::size_t kRingBytesMin = 4 << 20;
inline constexpr std::size_t kRingBytesMax = 1 << 30;
static_assert(kRingBytesMin >= 2 * RecordBytes(kFrameBytesMax));

class RingWriter {
 public:
  enum class Result { kDone, kFull, kBroken };

  // `data` has `bytes`, a power of two from kRingBytesMin to kRingBytesMax.
  RingWriter(RingHead* head, char* data, std::size_t bytes);

  // Copies a frame into the ring. kBroken: the reader showed a position that
  // cannot be.
  Result Put(const Frame& frame, const char* payload);
  // Shows the reader what was put.
  void Publish();
  std::size_t unpublished_bytes() const { return position() - published_; }

  // Any thread: whether such a frame would find room now.
  bool HasRoom(std::size_t payload_bytes) const;

 private:
  std::uint64_t position() const {
    return position_.load(std::memory_order_relaxed);
  }
  // Bytes up to the end of the record, those that are skipped included.
  std::size_t Needed(std::size_t payload_bytes, std::uint64_t position) const;

  RingHead* const head_;
  char* const data_;
  const std::size_t bytes_;
  std::atomic<std::uint64_t> position_{0};
  std::uint64_t published_ = 0;
  std::uint64_t released_ = 0;  // as last read, and checked
};

class RingReader {
 public:
  enum class Result { kFrame, kNothing, kBroken };

  RingReader(RingHead* head, const char* data, std::size_t bytes);

  // The same frame until Pop(). kBroken: the writer showed a position, or wrote
  // a record, that cannot be.
  Result Next();
  const Frame& frame() const { return frame_; }
  const char* payload() const { return payload_; }
  void Pop();
  // Shows the writer what was popped.
  void Release();
  std::size_t unreleased_bytes() const { return position() - released_; }

  // Any thread: whether Next() has something.
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
  std::uint64_t published_ = 0;  // as last read, and checked
  std::uint64_t released_ = 0;
  Frame frame_;
  const char* payload_ = nullptr;
};

}  // namespace troupe::comm

#endif  // COMM_SHM_RING_H_
