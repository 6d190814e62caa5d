// Cuts a stream of bytes into frames.
//
//   FrameReader reader;
//   iovec room[2];
//   const int pieces = reader.Room(room);      // memory for the next bytes
//   reader.Filled(::readv(fd, room, pieces));  // number of bytes read
//   while (reader.Next(place) == FrameReader::Got::kFrame) {
//     Show(reader.frame(), reader.payload());
//   }
//
// A payload with a place is read to that place. One without, of up to 64 KiB,
// is returned in the buffer, if it is aligned there.
//
// Units: in a stream with `unit_bytes`, zeros fill up every header, and every
// payload, to a multiple of that.
//
// Threads: one at a time. Memory: 68 KiB, and the longest payload that had no
// place and did not fit in the buffer.

#ifndef COMM_TCP_FRAME_READER_H_
#define COMM_TCP_FRAME_READER_H_

#include <sys/uio.h>

#include <cstddef>
#include <memory>

#include "absl/functional/function_ref.h"
#include "comm/link.h"

namespace troupe::comm {

class FrameReader {
 public:
  enum class Got {
    kFrame,  // frame() and payload() are complete, until the next call
    kMore,   // more bytes are needed
    kBad,    // frame() has a payload that is too long; reading ends
  };
  // See FrameSink::Place(); called once for each frame with a payload.
  using Place = absl::FunctionRef<char*(const Frame&)>;

  explicit FrameReader(std::size_t unit_bytes = 1);

  // Fills one or two pieces and returns their number. Call it after kMore only.
  int Room(iovec room[2]);
  // Records that `bytes` were read into the pieces.
  void Filled(std::size_t bytes);

  Got Next(Place place);
  const Frame& frame() const { return frame_; }
  // Returns the payload; null if it has no bytes.
  const char* payload() const { return payload_; }

  // Returns whether bytes wait for Next().
  bool has_bytes() const { return begin_ < end_; }

 private:
  // Makes `own_` long enough for the payload.
  char* OwnPlace();
  // Returns the number of zeros behind `bytes` bytes.
  std::size_t Padding(std::size_t bytes) const {
    return (unit_bytes_ - bytes % unit_bytes_) % unit_bytes_;
  }
  // Returns a payload that is complete in the buffer.
  Got TakeBuffered();

  const std::size_t unit_bytes_;
  const std::unique_ptr<char[]> buffer_;
  std::size_t begin_ = 0;  // unread bytes in the buffer: [begin_, end_)
  std::size_t end_ = 0;
  // Number of zeros to skip before the next header.
  std::size_t padding_ = 0;
  Frame frame_;
  const char* payload_ = nullptr;
  // Whether the payload of frame_ is being received into the buffer.
  bool buffered_ = false;
  // Place of the payload being received, or null.
  char* place_ = nullptr;
  std::size_t placed_ = 0;
  std::unique_ptr<char[]> own_;
  std::size_t own_bytes_ = 0;
};

}  // namespace troupe::comm

#endif  // COMM_TCP_FRAME_READER_H_
