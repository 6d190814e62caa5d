#include "comm/tcp/frame_reader.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace troupe::comm {
namespace {

// Limit on the payloads that are received into the buffer; and its size, with
// room for headers.
constexpr std::size_t kBufferedMax = 64 << 10;
constexpr std::size_t kBufferBytes = kBufferedMax + (4 << 10);
// Alignment of a payload that is returned in the buffer; the same as from
// `new`.
constexpr std::size_t kAlignment = alignof(std::max_align_t);

bool IsAligned(const char* address) {
  return reinterpret_cast<std::uintptr_t>(address) % kAlignment == 0;
}

}  // namespace

FrameReader::FrameReader(std::size_t unit_bytes)
    : unit_bytes_(unit_bytes), buffer_(new char[kBufferBytes]) {}

int FrameReader::Room(iovec room[2]) {
  if (place_ != nullptr) {
    // Reads the header behind the payload along with it, but no more: the next
    // payload has a place of its own.
    room[0] = {place_ + placed_, frame_.bytes - placed_};
    room[1] = {buffer_.get(),
               Padding(frame_.bytes) + sizeof(Frame) + Padding(sizeof(Frame))};
    return 2;
  }
  // A part that is received stays where it is, if the rest fits in behind it.
  const bool stays = buffered_ && IsAligned(buffer_.get() + begin_) &&
                     begin_ + frame_.bytes <= kBufferBytes;
  if (begin_ > 0 && !stays) {
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
  if (buffered_) return TakeBuffered();
  if (place_ == nullptr) {
    const std::size_t skipped = std::min(padding_, end_ - begin_);
    begin_ += skipped;
    padding_ -= skipped;
    const std::size_t head_bytes = sizeof(Frame) + Padding(sizeof(Frame));
    if (end_ - begin_ < head_bytes) return Got::kMore;
    std::memcpy(&frame_, buffer_.get() + begin_, sizeof(Frame));
    if (frame_.bytes > kFrameBytesMax) return Got::kBad;
    begin_ += head_bytes;
    payload_ = nullptr;
    if (frame_.bytes == 0) return Got::kFrame;

    place_ = place(frame_);
    if (place_ == nullptr && frame_.bytes <= kBufferedMax) {
      buffered_ = true;
      return TakeBuffered();
    }
    if (place_ == nullptr) place_ = OwnPlace();
    const std::size_t count =
        std::min<std::size_t>(end_ - begin_, frame_.bytes);
    std::memcpy(place_, buffer_.get() + begin_, count);
    begin_ += count;
    placed_ = count;
    if (begin_ == end_) begin_ = end_ = 0;
  }
  if (placed_ < frame_.bytes) return Got::kMore;
  payload_ = place_;
  place_ = nullptr;
  placed_ = 0;
  padding_ = Padding(frame_.bytes);
  return Got::kFrame;
}

FrameReader::Got FrameReader::TakeBuffered() {
  if (end_ - begin_ < frame_.bytes) return Got::kMore;
  payload_ = buffer_.get() + begin_;
  if (!IsAligned(payload_)) {
    char* const own = OwnPlace();
    std::memcpy(own, payload_, frame_.bytes);
    payload_ = own;
  }
  begin_ += frame_.bytes;
  buffered_ = false;
  padding_ = Padding(frame_.bytes);
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
