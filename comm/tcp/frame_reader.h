// Cuts a stream of bytes into frames.
//
//   FrameReader reader;
//   iovec room[2];
//   const int pieces = reader.Room(room);      // where the next bytes belong
//   reader.Filled(::readv(fd, room, pieces));  // so many are there
//   while (reader.Next(place) == FrameReader::Got::kFrame) {
//     Show(reader.frame(), reader.payload());
//   }
//
// A payload that was placed is read to its place; a short one that was not is
// shown in the buffer, where it happens to be aligned.
//
// Threads: one at a time. Memory: 64 KiB, and the longest payload that was
// neither placed nor whole in the buffer.

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
    kFrame,  // frame() and payload() are whole, until the next call
    kMore,   // more bytes are needed
    kBad,    // frame() has a payload that is too long; nothing goes on
  };
  // As FrameSink::Place(); asked once for each frame with a payload.
  using Place = absl::FunctionRef<char*(const Frame&)>;

  FrameReader();

  // Fills one or two pieces and returns their number. After kMore only.
  int Room(iovec room[2]);
  // So many bytes have been put there.
  void Filled(std::size_t bytes);

  Got Next(Place place);
  const Frame& frame() const { return frame_; }
  // Null without bytes.
  const char* payload() const { return payload_; }

  // Bytes that wait for Next().
  bool has_bytes() const { return begin_ < end_; }

 private:
  // Makes `own_` long enough for the payload.
  char* OwnPlace();

  const std::unique_ptr<char[]> buffer_;
  std::size_t begin_ = 0;  // of what is in the buffer
  std::size_t end_ = 0;
  Frame frame_;
  const char* payload_ = nullptr;
  // Of a payload that is coming, where not null.
  char* place_ = nullptr;
  std::size_t placed_ = 0;
  std::unique_ptr<char[]> own_;
  std::size_t own_bytes_ = 0;
};

}  // namespace troupe::comm

#endif  // COMM_TCP_FRAME_READER_H_
