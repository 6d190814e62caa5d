#include "comm/mpi/mpi_payloads.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "base/check.h"
#include "comm/farewell.h"
#include "comm/mpi/mpi_sends.h"

namespace troupe::comm::internal {
namespace {

constexpr std::size_t kWordsMax = sizeof(Frame) + kFarewellBytesMax;

}  // namespace

MpiPayloads::MpiPayloads(std::shared_ptr<MpiContext> context, int rank, int tag)
    : context_(std::move(context)), rank_(rank), tag_(tag) {
  for (Payload& payload : payloads_) {
    payload.last_words.reset(new char[kWordsMax]);
  }
}

bool MpiPayloads::HasRoom() const {
  if (due_ == 0) return true;
  const Payload& newest = payloads_[(next_ + kPayloads - 1) % kPayloads];
  return due_ < kPayloads && newest.data != own_.get();
}

absl::Status MpiPayloads::Begin(const Frame& frame, char* place,
                                bool confirms) {
  Payload& payload = payloads_[next_];
  payload.frame = frame;
  if (place == nullptr) {
    if (own_bytes_ < frame.bytes) {
      own_bytes_ = std::min<std::size_t>(kFrameBytesMax, 2 * frame.bytes);
      own_.reset(new char[own_bytes_]);
    }
    place = own_.get();
  }
  payload.data = place;
  payload.is_confirmed = !confirms;
  payload.is_revoked = false;
  if (confirms) {
    TROUPE_RETURN_IF_ERROR(context_->Receive(payload.last_words.get(),
                                             kWordsMax, rank_, tag_ + 1,
                                             &payload.confirmation));
  }
  const absl::Status begun =
      context_->Receive(place, frame.bytes, rank_, tag_, &payload.payload);
  payload.has_arrived = !begun.ok();
  if (due_++ == 0) oldest_ = next_;
  next_ = (next_ + 1) % kPayloads;
  return begun;
}

absl::StatusOr<MpiPayloads::State> MpiPayloads::Test() {
  if (due_ == 0) return State::kDue;
  const std::size_t at = (next_ + kPayloads - due_) % kPayloads;
  Payload& payload = payloads_[at];
  if (!payload.has_arrived) {
    TROUPE_ASSIGN_OR_RETURN(payload.has_arrived,
                            context_->Test(&payload.payload, &payload.bytes));
  }
  // Last words come also if the payload does not.
  if (!payload.is_confirmed) {
    int words = 0;
    TROUPE_ASSIGN_OR_RETURN(payload.is_confirmed,
                            context_->Test(&payload.confirmation, &words));
    payload.is_revoked = words > 0;
  }
  if (payload.is_revoked) {
    oldest_ = at;
    return State::kRevoked;
  }
  if (!payload.has_arrived || !payload.is_confirmed) return State::kDue;
  oldest_ = at;
  --due_;
  return static_cast<std::size_t>(payload.bytes) == payload.frame.bytes
             ? State::kWhole
             : State::kWrongSize;
}

void MpiPayloads::End(const absl::Status& why) {
  for (; due_ > 0; --due_) {
    EndOne(&payloads_[(next_ + kPayloads - due_) % kPayloads], why);
  }
}

void MpiPayloads::EndOne(Payload* payload, const absl::Status& why) {
  if (!payload->is_confirmed) {
    context_->Cancel(&payload->confirmation);
    context_->Abandon(payload->confirmation, std::move(payload->last_words));
  }
  if (payload->has_arrived) return;
  context_->Cancel(&payload->payload);
  if (payload->data == own_.get()) {
    context_->Abandon(payload->payload, std::move(own_));
    return;
  }
  const absl::Time until = absl::Now() + kMpiLinkEndMax;
  while (absl::Now() < until) {
    const absl::StatusOr<bool> done = context_->Test(&payload->payload);
    if (!done.ok() || *done) return;
    std::this_thread::yield();
  }
  context_->Break(why);
}

}  // namespace troupe::comm::internal
