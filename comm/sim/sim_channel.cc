#include "comm/sim/sim_channel.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

namespace troupe::comm {

void SimPacket::Place(FrameSink& sink, int from) {
  place = sink.Place(from, frame);
  placed = true;
}

void SimPacket::Take(FrameSink& sink, int from) const {
  const char* const data = copied ? copy.data() : payload;
  if (place != nullptr) {
    std::memcpy(place, data, frame.bytes);
    sink.Take(from, frame, nullptr);
    return;
  }
  // Aligned as a link's buffers are.
  std::vector<std::max_align_t> shown(frame.bytes / sizeof(std::max_align_t) +
                                      1);
  if (frame.bytes > 0) std::memcpy(shown.data(), data, frame.bytes);
  sink.Take(from, frame, reinterpret_cast<const char*>(shown.data()));
}

void SimPacket::OwnPayload() {
  if (copied || frame.bytes == 0) return;
  copy.assign(payload, frame.bytes);
  copied = true;
}

void SimChannel::Push(const Frame& frame, const char* payload, SendDone* done,
                      bool copy) {
  if (packets_.empty()) Delay();
  SimPacket& packet = packets_.emplace_back();
  packet.frame = frame;
  packet.payload = payload;
  packet.done = done;
  if (copy) packet.OwnPayload();
}

void SimChannel::Pop() {
  packets_.pop_front();
  Delay();
}

void SimChannel::SetHeld(bool held) {
  held_ = held;
  due_ = std::max(due_, clock_->now() + 1);
}

std::vector<SendDone*> SimChannel::Drop() {
  std::vector<SendDone*> dones;
  for (const SimPacket& packet : packets_) {
    if (packet.done != nullptr) dones.push_back(packet.done);
  }
  packets_.clear();
  return dones;
}

std::vector<SendDone*> SimChannel::Detach() {
  std::vector<SendDone*> dones;
  for (SimPacket& packet : packets_) {
    packet.OwnPayload();
    if (packet.done != nullptr) {
      dones.push_back(std::exchange(packet.done, nullptr));
    }
  }
  return dones;
}

}  // namespace troupe::comm
