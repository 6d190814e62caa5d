#include "comm/spanning/frames/parcels.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/field_error.h"

namespace troupe::comm::internal {
namespace {

// Limit on the memory for one sender's parcels that no handler has taken: small
// payloads, and descriptions of large ones.
constexpr std::size_t kHeldParcelBytesMax = std::size_t{16} << 20;
constexpr std::size_t kParcelBytes = 1024;

}  // namespace

Parcels::Parcels(Switchboard* board, std::shared_ptr<Courier> courier,
                 std::uint32_t group)
    : board_(*board),
      courier_(std::move(courier)),
      group_(group),
      held_bytes_(board->processes()) {}

void Parcels::Send(int to, std::uint32_t channel, absl::string_view header,
                   const nn::Tensor& payload, const Event& after,
                   const Event& done) {
  Courier::Item item;
  item.peer = to;
  item.lane = channel;
  item.frame = MakeFrame(FrameType::kOffer, group_, 0);
  item.frame.tag = channel;
  item.header = std::string(header);
  item.payload = payload;
  courier_->Send(std::move(item), after, done);
}

absl::Status Parcels::status() const {
  absl::MutexLock lock(&mutex_);
  return status_;
}

void Parcels::SetHandler(std::uint32_t channel,
                         std::shared_ptr<ParcelHandler> handler) {
  std::vector<int> senders;
  {
    absl::MutexLock lock(&mutex_);
    Channel& entry = channels_[channel];
    entry.handler = std::move(handler);
    const auto idle = [&entry]() { return entry.calls == 0; };
    mutex_.Await(absl::Condition(&idle));
    for (const auto& [peer, queue] : entry.queues) senders.push_back(peer);
  }
  for (int peer : senders) Serve(channel, peer);
}

absl::Status Parcels::Take(int peer, const Frame& frame, const char* payload) {
  if (TypeOf(frame) == FrameType::kAbort) {
    board_.AbortAll(absl::Status(
        frame.words[0] >= 1 && frame.words[0] <= 16
            ? static_cast<absl::StatusCode>(frame.words[0])
            : absl::StatusCode::kUnknown,
        frame.bytes > 0 ? absl::string_view(payload, frame.bytes) : ""));
    return absl::OkStatus();
  }
  if (TypeOf(frame) == FrameType::kBye) return absl::OkStatus();
  if (TypeOf(frame) != FrameType::kOffer) {
    return absl::InvalidArgumentError(
        absl::StrCat(board_.NameOf(peer), " sent a frame of type ", frame.type,
                     " where parcels go"));
  }
  TROUPE_ASSIGN_OR_RETURN(const Courier::Offer offer,
                          Courier::Read(frame, payload));
  if (offer.header.size() > kParcelHeaderBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(board_.NameOf(peer), " sent a parcel with a header of ",
                     offer.header.size(), " bytes"));
  }
  Waiting waiting;
  waiting.id = frame.seq;
  waiting.parcel = {peer, std::string(offer.header), offer.bytes};
  waiting.small = offer.data != nullptr || offer.bytes == 0;
  if (offer.data != nullptr) {
    waiting.data = board_.staging().Take(offer.bytes);
    std::memcpy(waiting.data.data(), offer.data, offer.bytes);
  }
  {
    absl::MutexLock lock(&mutex_);
    if (!status_.ok()) return absl::OkStatus();
    std::size_t& held = held_bytes_[peer];
    held += kParcelBytes + frame.bytes;
    if (held > kHeldParcelBytesMax) {
      return absl::ResourceExhaustedError(absl::StrCat(
          board_.NameOf(peer), " sent ", held,
          " bytes of parcels that nobody took; the last on channel ",
          frame.tag));
    }
    channels_[frame.tag].queues[peer].waiting.push_back(std::move(waiting));
  }
  // The handler may drive the fabric: not from within a link.
  board_.Post([self = shared_from_this(), channel = frame.tag, peer] {
    self->Serve(channel, peer);
  });
  return absl::OkStatus();
}

void Parcels::Serve(std::uint32_t channel, int peer) {
  Waiting waiting;
  std::shared_ptr<ParcelHandler> handler;
  {
    absl::MutexLock lock(&mutex_);
    Channel& entry = channels_[channel];
    Queue& queue = entry.queues[peer];
    if (!status_.ok() || entry.handler == nullptr || queue.busy ||
        queue.waiting.empty()) {
      return;
    }
    queue.busy = true;
    waiting = std::move(queue.waiting.front());
    queue.waiting.pop_front();
    held_bytes_[peer] -= kParcelBytes + waiting.parcel.header.size() +
                         (waiting.small ? waiting.parcel.bytes : 0);
    handler = entry.handler;
    ++entry.calls;
  }
  ReceiveOne(channel, *handler, std::move(waiting));
}

// Makes the call to the handler that Serve() counted.
void Parcels::ReceiveOne(std::uint32_t channel, ParcelHandler& handler,
                         Waiting waiting) {
  const int peer = waiting.parcel.from;
  absl::StatusOr<nn::Tensor> into = handler.Receive(waiting.parcel);
  {
    absl::MutexLock lock(&mutex_);
    --channels_[channel].calls;
  }
  const std::size_t room = into.ok() && into->defined() ? into->bytes() : 0;
  if (into.ok() && room != waiting.parcel.bytes) {
    into = absl::InvalidArgumentError(
        absl::StrCat("a parcel of ", waiting.parcel.bytes,
                     " bytes was to go into a tensor of ", room));
  }
  if (!into.ok()) {
    return board_.Close(
        peer,
        base::WithMessage(
            into.status(),
            absl::StrCat("a parcel of ", board_.NameOf(peer), " on channel ",
                         channel, " was refused: ", into.status().message())));
  }
  if (waiting.small) {
    if (room > 0) std::memcpy(into->raw(), waiting.data.data(), room);
    return Complete(channel, waiting, *into, absl::OkStatus());
  }
  const std::uint64_t id = waiting.id;
  // Shared, since a std::function must be copyable.
  auto known = std::make_shared<Waiting>(std::move(waiting));
  courier_->Accept(peer, id,
                   {group_, *into, room,
                    [self = shared_from_this(), channel, known,
                     to = *into](const absl::Status& status) {
                      self->Complete(channel, *known, to, status);
                    }});
}

void Parcels::Complete(std::uint32_t channel, const Waiting& waiting,
                       const nn::Tensor& into, const absl::Status& status) {
  if (!status.ok()) return;
  std::shared_ptr<ParcelHandler> handler;
  {
    absl::MutexLock lock(&mutex_);
    Channel& entry = channels_[channel];
    handler = entry.handler;
    if (handler != nullptr) ++entry.calls;
  }
  if (handler != nullptr) {
    handler->Complete(waiting.parcel, into);
    absl::MutexLock lock(&mutex_);
    --channels_[channel].calls;
  }
  Next(channel, waiting.parcel.from);
}

void Parcels::Next(std::uint32_t channel, int peer) {
  {
    absl::MutexLock lock(&mutex_);
    Queue& queue = channels_[channel].queues[peer];
    queue.busy = false;
    if (queue.waiting.empty()) return;
  }
  board_.Post([self = shared_from_this(), channel, peer] {
    self->Serve(channel, peer);
  });
}

void Parcels::OnLost(int peer, const absl::Status&) {
  absl::MutexLock lock(&mutex_);
  for (auto& [channel, entry] : channels_) entry.queues.erase(peer);
}

void Parcels::End(const absl::Status& why, bool tell_peers) {
  {
    absl::MutexLock lock(&mutex_);
    if (!status_.ok()) return;
    status_ = why;
    for (auto& [channel, entry] : channels_) entry.queues.clear();
  }
  board_.Post([self = shared_from_this(), why] {
    self->courier_->Cancel(self->group_, why);
  });
  if (!tell_peers) return;
  Frame frame = MakeFrame(FrameType::kAbort, group_, 0);
  frame.words[0] = static_cast<std::uint64_t>(why.code());
  const absl::string_view text = why.message().substr(0, kAbortTextMax);
  frame.bytes = static_cast<std::uint32_t>(text.size());
  for (int peer = 0; peer < board_.processes(); ++peer) {
    if (peer == board_.process()) continue;
    board_.Send(peer, frame, text.data(), /*done=*/nullptr, /*copy=*/true);
  }
}

}  // namespace troupe::comm::internal
