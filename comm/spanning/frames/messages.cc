#include "comm/spanning/frames/messages.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/field_error.h"

namespace troupe::comm::internal {
namespace {

// Limit on the bytes of offers that one group keeps for receives that have not
// been posted.
constexpr std::size_t kHeldOfferBytesMax = std::size_t{64} << 20;
// Memory for an offer besides its payload.
constexpr std::size_t kOfferBytes = 256;

// Returns the last word of an offer.
std::uint64_t PackRoute(int from, int to, nn::DType dtype) {
  return static_cast<std::uint64_t>(from) << 32 |
         static_cast<std::uint64_t>(to) << 16 |
         static_cast<std::uint64_t>(dtype);
}
std::uint64_t LaneOf(int from, int to) {
  return static_cast<std::uint64_t>(from) << 32 | to;
}
struct Route {
  explicit Route(std::uint64_t word)
      : from(word >> 32), to(word >> 16 & 0xffff), dtype(word & 0xffff) {}
  std::uint64_t from, to, dtype;
};

}  // namespace

SpanningMessages::SpanningMessages(Switchboard* board,
                                   std::shared_ptr<Courier> courier,
                                   std::uint32_t group,
                                   const GroupLayout* layout)
    : board_(*board),
      courier_(std::move(courier)),
      group_(group),
      layout_(*layout),
      mailboxes_(new Mailbox[layout->ranks_of(layout->self()).size()]),
      pending_(new PendingMessages[layout->ranks_of(layout->self()).size()]) {}

void SpanningMessages::Send(int from, int to, std::uint32_t tag,
                            const nn::Tensor& data, const Event& after,
                            const Event& done) {
  Offer offer;
  offer.source = from;
  offer.tag = tag;
  offer.dtype = data.dtype();
  offer.count = data.numel();
  offer.data = data;
  offer.after = after;
  offer.done = done;
  pending(from).Add(Pending(offer, to));
  after.OnReady([fail = fail_, from,
                 what = offer.ToString(to)](const absl::Status& status) {
    if (status.ok()) return;
    fail(base::WithMessage(
        status, absl::StrCat("rank ", from, " could not begin ", what, ": ",
                             status.message())));
  });
  if (layout_.member_of(to) == layout_.self()) {
    if (auto delivery = mailbox(to).Offer(std::move(offer))) {
      Carry(to, *delivery);
    }
    return;
  }
  Courier::Item item;
  item.peer = layout_.process_of(layout_.member_of(to));
  item.lane = LaneOf(from, to);
  item.frame = MakeFrame(FrameType::kOffer, group_, 0);
  item.frame.tag = tag;
  item.frame.words[1] = static_cast<std::uint64_t>(data.numel());
  item.frame.words[2] = PackRoute(from, to, data.dtype());
  item.payload = data;
  courier_->Send(std::move(item), after, done);
}

void SpanningMessages::Receive(int rank, internal::Receive receive) {
  pending(rank).Add(Pending(receive));
  if (auto delivery = mailbox(rank).Post(std::move(receive))) {
    Carry(rank, *delivery);
  }
}

absl::Status SpanningMessages::CheckOffer(int peer, const Frame& frame,
                                          const Courier::Offer& offer) const {
  const Route route(frame.words[2]);
  const auto size = static_cast<std::uint64_t>(layout_.size());
  const bool fits =
      route.from < size && route.to < size &&
      layout_.process_of(layout_.member_of(static_cast<int>(route.from))) ==
          peer &&
      layout_.member_of(static_cast<int>(route.to)) == layout_.self() &&
      route.dtype <= static_cast<std::uint64_t>(nn::DType::kU8) &&
      frame.words[1] <= offer.bytes &&
      frame.words[1] * nn::SizeOf(static_cast<nn::DType>(route.dtype)) ==
          offer.bytes;
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      board_.NameOf(peer), " offered ", frame.words[1], " elements of dtype ",
      route.dtype, " in ", offer.bytes, " bytes from rank ", route.from,
      " to rank ", route.to, ", which cannot be"));
}

absl::Status SpanningMessages::Take(int peer, const Frame& frame,
                                    const char* payload) {
  TROUPE_ASSIGN_OR_RETURN(const Courier::Offer sent,
                          Courier::Read(frame, payload));
  TROUPE_RETURN_IF_ERROR(CheckOffer(peer, frame, sent));
  const Route route(frame.words[2]);
  const int to = static_cast<int>(route.to);
  Offer offer;
  offer.source = static_cast<int>(route.from);
  offer.tag = frame.tag;
  offer.dtype = static_cast<nn::DType>(route.dtype);
  offer.count = static_cast<std::int64_t>(frame.words[1]);
  offer.id = frame.seq;
  const std::size_t held = kOfferBytes + (sent.data ? sent.bytes : 0);
  if (held_bytes_.fetch_add(held) + held > kHeldOfferBytesMax) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "rank ", to, " has ", held_bytes_.load(),
        " bytes of messages that it did not receive; the last is rank ",
        offer.source, "'s ", offer.ToString(to), "; receive them"));
  }
  if (sent.data != nullptr) {
    TROUPE_ASSIGN_OR_RETURN(
        offer.data, nn::Tensor::Create({offer.count}, offer.dtype, allocator_));
    std::memcpy(offer.data.raw(), sent.data, sent.bytes);
  }
  if (auto delivery = mailbox(to).Offer(std::move(offer))) Carry(to, *delivery);
  return absl::OkStatus();
}

void SpanningMessages::Carry(int to, const Delivery& delivery) {
  const internal::Offer& offer = delivery.offer;
  const bool from_here = layout_.member_of(offer.source) == layout_.self();
  if (!from_here) {
    held_bytes_.fetch_sub(kOfferBytes +
                          (offer.data.defined() ? offer.data.bytes() : 0));
  }
  if (const absl::Status fits = delivery.Check(to); !fits.ok()) {
    fail_(fits);
    delivery.receive.done.Complete(fits);
    offer.done.Complete(fits);
  } else if (from_here || offer.data.defined() || offer.count == 0) {
    CopyAfter(delivery);
  } else {
    Courier::Receipt receipt;
    receipt.group = group_;
    receipt.into = delivery.receive.into;
    receipt.bytes =
        static_cast<std::size_t>(offer.count) * nn::SizeOf(offer.dtype);
    receipt.told = [delivery](const absl::Status& status) {
      if (status.ok() && delivery.receive.arrival != nullptr) {
        *delivery.receive.arrival = {delivery.offer.source,
                                     delivery.offer.count};
      }
      delivery.receive.done.Complete(status);
    };
    courier_->Accept(layout_.process_of(layout_.member_of(offer.source)),
                     offer.id, std::move(receipt));
  }
}

void SpanningMessages::CopyAfter(const Delivery& delivery) {
  std::uint64_t id;
  {
    absl::MutexLock lock(&mutex_);
    id = next_met_++;
    met_.emplace(id, delivery);
  }
  delivery.offer.after.OnReady([weak = self_, id](const absl::Status& after) {
    const auto self = weak.lock();
    if (self == nullptr || !after.ok()) return;  // Close() ends both
    Delivery met;
    {
      absl::MutexLock lock(&self->mutex_);
      const auto found = self->met_.find(id);
      if (found == self->met_.end()) return;
      met = std::move(found->second);
      self->met_.erase(found);
      // Copied under the lock: the caller of Close() may release the memory.
      met.Copy();
    }
    // The events' callbacks may drive the fabric: not from within a link.
    self->board_.Post([met] {
      met.receive.done.Complete(absl::OkStatus());
      met.offer.done.Complete(absl::OkStatus());
    });
  });
}

void SpanningMessages::Close(const absl::Status& why) {
  for (int rank : layout_.ranks_of(layout_.self())) mailbox(rank).Close(why);
  std::map<std::uint64_t, Delivery> met;
  {
    absl::MutexLock lock(&mutex_);
    met.swap(met_);
  }
  for (const auto& [id, delivery] : met) {
    delivery.receive.done.Complete(why);
    delivery.offer.done.Complete(why);
  }
  courier_->Cancel(group_, why);
  closed_.store(true);
}

std::string SpanningMessages::FirstThatNeeds(int rank) const {
  const int member = layout_.member_of(rank);
  for (int here : layout_.ranks_of(layout_.self())) {
    std::string text = mailbox(here).FirstReceiveFrom(rank);
    if (text.empty() && member == layout_.self()) {
      text = mailbox(rank).FirstOfferOf(here, rank);
    } else if (text.empty()) {
      const auto offer = courier_->FirstUncleared(
          group_, layout_.process_of(member), LaneOf(here, rank));
      if (offer) {
        text = SendText(rank, offer->tag,
                        static_cast<nn::DType>(Route(offer->words[2]).dtype),
                        static_cast<std::int64_t>(offer->words[1]));
      }
    }
    if (!text.empty()) return absl::StrCat("rank ", here, "'s ", text);
  }
  return "";
}

std::string SpanningMessages::FirstReceive() const {
  for (int here : layout_.ranks_of(layout_.self())) {
    const std::string text = mailbox(here).FirstReceive();
    if (!text.empty()) return absl::StrCat("rank ", here, "'s ", text);
  }
  return "";
}

}  // namespace troupe::comm::internal
