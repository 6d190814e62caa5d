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
// A payload with a place is read to that place. A short one without is returned
// in the buffer, if it is aligned there.
//
// Threads: one at a time. Memory: 64 KiB, and the longest payload that had no
// place and was not complete in the buffer.

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

  FrameReader();

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

  const std::unique_ptr<char[]> buffer_;
  std::size_t begin_ = 0;  // unread bytes in the buffer: [begin_, end_)
  std::size_t end_ = 0;
  Frame frame_;
  const char* payload_ = nullptr;
  // Place of the payload being received, or null.
  char* place_ = nullptr;
  std::size_t placed_ = 0;
  std::unique_ptr<char[]> own_;
  std::size_t own_bytes_ = 0;
};

}  // namespace troupe::comm

#endif  // COMM_TCP_FRAME_READER_H_
