#include "comm/tcp/frame_reader.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace troupe::comm {
namespace {

constexpr std::size_t kBufferBytes = 64 << 10;
// Alignment of a payload that is returned in the buffer; the same as from
// `new`.
constexpr std::size_t kAlignment = alignof(std::max_align_t);

bool IsAligned(const char* address) {
  return reinterpret_cast<std::uintptr_t>(address) % kAlignment == 0;
}

}  // namespace

FrameReader::FrameReader() : buffer_(new char[kBufferBytes]) {}

int FrameReader::Room(iovec room[2]) {
  if (place_ != nullptr) {
    // Reads the header behind the payload along with it, but no more: the next
    // payload has a place of its own.
    room[0] = {place_ + placed_, frame_.bytes - placed_};
    room[1] = {buffer_.get(), sizeof(Frame)};
    return 2;
  }
  if (begin_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  room[0] = {buffer_.get() + end_, kBufferBytes - end_};
  return 1;
}

void FrameReader::Filled(std::size_t bytes) {
  if (place_ != nullptr) {
    const std::size_t here = std::min(bytes, frame_.bytes - placed_);
    placed_ += here;
    bytes -= here;
  }
  end_ += bytes;
}

FrameReader::Got FrameReader::Next(Place place) {
  if (place_ == nullptr) {
    if (end_ - begin_ < sizeof(Frame)) return Got::kMore;
    std::memcpy(&frame_, buffer_.get() + begin_, sizeof(Frame));
    if (frame_.bytes > kFrameBytesMax) return Got::kBad;
    begin_ += sizeof(Frame);
    payload_ = nullptr;
    if (frame_.bytes == 0) return Got::kFrame;

    const char* const here = buffer_.get() + begin_;
    const std::size_t count =
        std::min<std::size_t>(end_ - begin_, frame_.bytes);
    place_ = place(frame_);
    if (place_ == nullptr && count == frame_.bytes && IsAligned(here)) {
      begin_ += count;
      payload_ = here;
      return Got::kFrame;
    }
    if (place_ == nullptr) place_ = OwnPlace();
    std::memcpy(place_, here, count);
    begin_ += count;
    placed_ = count;
    if (begin_ == end_) begin_ = end_ = 0;
  }
  if (placed_ < frame_.bytes) return Got::kMore;
  payload_ = place_;
  place_ = nullptr;
  placed_ = 0;
  return Got::kFrame;
}

char* FrameReader::OwnPlace() {
  if (own_bytes_ < frame_.bytes) {
    own_bytes_ = std::min<std::size_t>(kFrameBytesMax, 2 * frame_.bytes);
    own_.reset(new char[own_bytes_]);
  }
  return own_.get();
}

}  // namespace troupe::comm
