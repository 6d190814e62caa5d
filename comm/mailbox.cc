#include "comm/mailbox.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace troupe::comm::internal {
namespace {

// Removes and returns the first element of `queue` for which `fits`, if any.
template <typename T, typename Fits>
std::optional<T> TakeFirst(std::deque<T>* queue, const Fits& fits) {
  const auto found = std::find_if(queue->begin(), queue->end(), fits);
  if (found == queue->end()) return std::nullopt;
  std::optional<T> taken = std::move(*found);
  queue->erase(found);
  return taken;
}

}  // namespace

std::string SendText(int to, std::uint32_t tag, nn::DType dtype,
                     std::int64_t count) {
  return absl::StrCat("send(to ", to, ", tag ", tag, ", ", nn::DTypeName(dtype),
                      " x ", count, ")");
}

std::string ReceiveText(int from, std::uint32_t tag, nn::DType dtype,
                        std::int64_t count) {
  return absl::StrCat("recv(from ",
                      from == kAnySource ? "any" : absl::StrCat(from), ", tag ",
                      tag, ", ", nn::DTypeName(dtype), " x ", count, ")");
}

std::string Receive::ToString() const {
  return ReceiveText(source, tag, into.dtype(), into.numel());
}

std::string Offer::ToString(int to) const {
  return SendText(to, tag, dtype, count);
}

absl::Status Delivery::Check(int to) const {
  if (offer.dtype == receive.into.dtype() &&
      offer.count <= receive.into.numel()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "rank ", offer.source, " started ", offer.ToString(to),
      ", which does not fit what rank ", to, " started: ", receive.ToString()));
}

void Delivery::Copy() const {
  if (offer.count > 0 && !offer.handed_over) {
    std::memcpy(receive.into.raw(), offer.data.raw(), offer.data.bytes());
  }
  if (receive.arrival == nullptr) return;
  *receive.arrival = {offer.source, offer.count};
  if (offer.handed_over) receive.arrival->data = offer.data;
}

std::optional<Delivery> Mailbox::Post(Receive receive) {
  absl::Status closed;
  {
    absl::MutexLock lock(&mutex_);
    closed = closed_;
    if (closed.ok()) {
      auto offer = TakeFirst(&offers_, [&](const internal::Offer& other) {
        return Fit(receive, other);
      });
      if (offer) return Delivery{std::move(receive), *std::move(offer)};
      receives_.push_back(std::move(receive));
      return std::nullopt;
    }
  }
  receive.done.Complete(closed);
  return std::nullopt;
}

std::optional<Delivery> Mailbox::Offer(internal::Offer offer) {
  absl::Status closed;
  {
    absl::MutexLock lock(&mutex_);
    closed = closed_;
    if (closed.ok()) {
      auto receive = TakeFirst(
          &receives_, [&](const Receive& other) { return Fit(other, offer); });
      if (receive) return Delivery{*std::move(receive), std::move(offer)};
      offers_.push_back(std::move(offer));
      return std::nullopt;
    }
  }
  offer.done.Complete(closed);
  return std::nullopt;
}

void Mailbox::Close(const absl::Status& status) {
  std::deque<Receive> receives;
  std::deque<internal::Offer> offers;
  {
    absl::MutexLock lock(&mutex_);
    if (!closed_.ok()) return;
    closed_ = status;
    receives.swap(receives_);
    offers.swap(offers_);
  }
  for (const Receive& receive : receives) receive.done.Complete(status);
  for (const internal::Offer& offer : offers) offer.done.Complete(status);
}

std::string Mailbox::FirstReceiveFrom(int source) const {
  absl::MutexLock lock(&mutex_);
  for (const Receive& receive : receives_) {
    if (receive.source == source) return receive.ToString();
  }
  return "";
}

std::string Mailbox::FirstOfferOf(int source, int to) const {
  absl::MutexLock lock(&mutex_);
  for (const internal::Offer& offer : offers_) {
    if (offer.source == source) return offer.ToString(to);
  }
  return "";
}

std::string Mailbox::FirstReceive() const {
  absl::MutexLock lock(&mutex_);
  return receives_.empty() ? "" : receives_.front().ToString();
}

}  // namespace troupe::comm::internal
