#include "comm/mpi/mpi_sends.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "base/check.h"
#include "comm/mpi/mpi_process.h"

namespace troupe::comm::internal {

MpiSends::~MpiSends() {
  for (Slot& slot : slots_) {
    for (Message* message : {&slot.head, &slot.payload, &slot.confirmation}) {
      if (message->due) context_->Abandon(message->request, slot.buffer);
    }
  }
  context_->TestAbandoned();
}

absl::StatusOr<bool> MpiSends::IsSent(Message* message) {
  if (!message->due) return true;
  TROUPE_ASSIGN_OR_RETURN(const bool sent, context_->Test(&message->request));
  message->due = !sent;
  return sent;
}

absl::StatusOr<bool> MpiSends::AreSent(Slot* slot) {
  TROUPE_ASSIGN_OR_RETURN(const bool head, IsSent(&slot->head));
  if (!head) return false;
  return IsSent(&slot->payload);
}

absl::StatusOr<bool> MpiSends::HasRoom() {
  if (held_ == kSlots) return false;
  Slot* const slot = &slots_[next_];
  TROUPE_ASSIGN_OR_RETURN(const bool sent, AreSent(slot));
  if (!sent) return false;
  return IsSent(&slot->confirmation);
}

absl::Status MpiSends::Send(const char* bytes, std::size_t count, int tag,
                            Message* message) {
  TROUPE_RETURN_IF_ERROR(
      context_->Send(bytes, count, rank_, tag, &message->request));
  message->due = true;
  return absl::OkStatus();
}

absl::Status MpiSends::Begin(const Frame& frame, const char* payload,
                             bool stays, SendDone** done) {
  Slot& slot = slots_[next_];
  slot.confirms = stays && frame.bytes > kMpiCopiedBytesMax;
  const bool packs = frame.bytes <= kMpiPackedBytesMax;
  const std::size_t bytes = sizeof(Frame) + (slot.confirms ? 0 : frame.bytes);
  if (slot.capacity < bytes) {
    slot.capacity = std::max(bytes, sizeof(Frame) + kMpiPackedBytesMax);
    slot.buffer.reset(new char[slot.capacity]);
  }
  char* const buffer = slot.buffer.get();
  Frame header = frame;
  if (slot.confirms) header.bytes |= kMpiConfirmedBit;
  std::memcpy(buffer, &header, sizeof(Frame));
  if (!slot.confirms && frame.bytes > 0) {
    std::memcpy(buffer + sizeof(Frame), payload, frame.bytes);
    payload = buffer + sizeof(Frame);
  }
  TROUPE_RETURN_IF_ERROR(
      Send(buffer, packs ? bytes : sizeof(Frame), tag_, &slot.head));
  if (!packs) {
    TROUPE_RETURN_IF_ERROR(Send(payload, frame.bytes, tag_ + 1, &slot.payload));
  }
  next_ = (next_ + 1) % kSlots;
  if (slot.confirms || held_ > 0) {
    ++held_;
    slot.done = std::exchange(*done, nullptr);
  }
  return absl::OkStatus();
}

absl::Status MpiSends::Release() {
  while (held_ > 0) {
    Slot& slot = slots_[(next_ + kSlots - held_) % kSlots];
    if (slot.confirms) {
      TROUPE_ASSIGN_OR_RETURN(const bool sent, AreSent(&slot));
      if (!sent) break;
      TROUPE_RETURN_IF_ERROR(
          Send(/*bytes=*/nullptr, 0, tag_ + 2, &slot.confirmation));
    }
    --held_;
    SendDone* const done = std::exchange(slot.done, nullptr);
    if (done != nullptr) done->OnSent();
  }
  return absl::OkStatus();
}

void MpiSends::SendWords(absl::string_view words, int tag) {
  std::shared_ptr<char[]> buffer(new char[words.size()]);
  std::memcpy(buffer.get(), words.data(), words.size());
  MPI_Request request = nullptr;
  const absl::Status sent =
      context_->Send(buffer.get(), words.size(), rank_, tag, &request);
  // An error here cannot be reported to the peer any more.
  if (sent.ok()) context_->Abandon(request, std::move(buffer));
}

void MpiSends::End(absl::string_view last_words, const absl::Status& why) {
  const absl::Time until = absl::Now() + kMpiLinkEndMax;
  while (Release().ok() && held_ > 0 && absl::Now() < until) {
    std::this_thread::yield();
  }
  if (held_ == 0) return;
  SendWords(last_words, tag_ + 2);
  context_->TestAbandoned();
  context_->Break(why);
  for (; held_ > 0; --held_) {
    Slot& slot = slots_[(next_ + kSlots - held_) % kSlots];
    SendDone* const done = std::exchange(slot.done, nullptr);
    if (done != nullptr) done->OnSent();
  }
}

}  // namespace troupe::comm::internal
