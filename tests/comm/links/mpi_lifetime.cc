#include "tests/comm/links/mpi_lifetime.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "base/check.h"
#include "comm/farewell.h"
#include "comm/link.h"
#include "comm/mpi/mpi_context.h"
#include "comm/mpi/mpi_payloads.h"
#include "comm/mpi/mpi_sends.h"
#include "tests/comm/links/link_test_util.h"

namespace troupe::comm {
namespace {

using internal::MpiContext;
using internal::MpiPayloads;
using internal::MpiSends;
using State = MpiPayloads::State;

constexpr std::uint32_t kBytes = 300'000;
// Number of calls in which something would have happened that must not.
constexpr int kCalls = 1'000;
constexpr int kCallsMax = 1'000'000;

// Returns a new context over MPI, which begins once: a trial may break it.
std::shared_ptr<MpiContext> NewContext() {
  // An isolated singleton needs neither a daemon nor a network.
  ::setenv("OMPI_MCA_ess_singleton_isolated", "1", /*overwrite=*/1);
  ::setenv("OMPI_MCA_btl", "self", /*overwrite=*/1);
  // The first one would end MPI.
  static const auto* const first =
      new absl::StatusOr<std::shared_ptr<MpiContext>>(MpiContext::Start());
  if (!first->ok()) return nullptr;
  auto context = MpiContext::Start();
  return context.ok() ? *std::move(context) : nullptr;
}

Frame FrameOf(std::uint32_t bytes) {
  Frame frame;
  frame.bytes = bytes;
  return frame;
}

// Both ends of a link, for payloads alone, whose headers nothing reads.
struct Ends {
  explicit Ends(const std::shared_ptr<MpiContext>& context)
      : sends(context, context->rank(), /*tag=*/0),
        payloads(context, context->rank(), /*tag=*/1),
        place(kBytes, '-') {}

  // Returns whether it could begin.
  bool Send(SendDone* done, std::uint32_t bytes = kBytes) {
    return sends.Begin(FrameOf(bytes), text.data(), /*stays=*/true, &done)
               .ok() &&
           done == nullptr;
  }
  bool Receive() {
    return payloads.Begin(FrameOf(kBytes), place.data(), /*confirms=*/true)
        .ok();
  }
  // Returns the state after at most `calls` calls.
  State StateWithin(int calls) {
    State state = State::kDue;
    for (int i = 0; i < calls && state == State::kDue; ++i) {
      state = payloads.Test().value();
    }
    return state;
  }
  void ReleaseUntil(const CountDone& done, int count) {
    for (int i = 0; i < kCallsMax && done.count < count; ++i) {
      TROUPE_CHECK(sends.Release().ok(), "nothing breaks this context");
    }
  }

  const std::string text = Text(kBytes, 1);
  MpiSends sends;
  MpiPayloads payloads;
  std::string place;
};

}  // namespace

bool HasMpi() { return NewContext() != nullptr; }

std::string WhenItIsReleased() {
  const std::shared_ptr<MpiContext> context = NewContext();
  if (context == nullptr) return "";
  Ends ends(context);
  CountDone done;
  if (!ends.Send(&done)) return "the payload is not sent from its memory";
  for (int i = 0; i < kCalls; ++i) {
    if (!ends.sends.Release().ok()) return "Release() fails";
  }
  if (done.count > 0) return "it is released before it was received";
  if (!ends.Receive()) return "it cannot be received";
  if (ends.StateWithin(kCalls) != State::kDue) {
    return "it is used before its sender has confirmed it";
  }
  ends.ReleaseUntil(done, 1);
  if (done.count != 1) return "it is never released";
  if (ends.StateWithin(kCallsMax) != State::kWhole) return "it never arrives";
  return ends.place == ends.text ? "" : "it has changed on its way";
}

std::string WhetherFramesKeepTheirOrder() {
  const std::shared_ptr<MpiContext> context = NewContext();
  if (context == nullptr) return "";
  Ends ends(context);
  CountDone first;
  CountDone second;
  if (!ends.Send(&first)) return "the payload is not sent from its memory";
  if (!ends.Send(&second, /*bytes=*/8)) return "a later frame is released";
  for (int i = 0; i < kCalls; ++i) {
    if (!ends.sends.Release().ok()) return "Release() fails";
  }
  if (second.count > 0) return "a later frame overtakes it";
  if (!ends.Receive()) return "it cannot be received";
  ends.ReleaseUntil(second, 1);
  return first.count == 1 && second.count == 1 ? "" : "one is not released";
}

std::string WhatAnEndLeaves() {
  const std::shared_ptr<MpiContext> context = NewContext();
  if (context == nullptr) return "";
  struct Done : SendDone {
    explicit Done(MpiContext* context) : context(context) {}
    void OnSent() override {
      MPI_Request request = nullptr;
      why = context->Receive(nullptr, 0, context->rank(), 9, &request);
      ++count;
    }
    MpiContext* const context;
    absl::Status why;
    int count = 0;
  };
  Ends ends(context);
  Done done(context.get());
  if (!ends.Send(&done)) return "the payload is not sent from its memory";
  const absl::Status why = absl::UnavailableError("nobody reads");
  ends.sends.End(FarewellBytes(why), why);
  if (done.count != 1) return "its memory is not given back";
  if (ends.sends.holds()) return "the link still holds it";
  return done.why == why ? "" : "MPI may read memory that was given back";
}

std::string WhatARevokedPayloadIs(bool received) {
  const std::shared_ptr<MpiContext> context = NewContext();
  if (context == nullptr) return "";
  Ends ends(context);
  if (!ends.Receive()) return "it cannot be received";
  std::vector<MPI_Request> requests(2);
  const int rank = context->rank();
  if (received &&
      !context->Send(ends.text.data(), kBytes, rank, 1, &requests[0]).ok()) {
    return "it cannot be sent";
  }
  const std::string words = FarewellBytes(absl::AbortedError("enough"));
  if (!context->Send(words.data(), words.size(), rank, 2, &requests[1]).ok()) {
    return "the last words cannot be sent";
  }
  if (ends.StateWithin(kCallsMax) != State::kRevoked) {
    return "it is used although its sender has given it up";
  }
  Frame frame;
  const char* const got = ends.payloads.oldest().last_words.get();
  std::memcpy(&frame, got, sizeof(frame));
  if (ReadFarewell(frame, got + sizeof(frame)) !=
      absl::AbortedError("enough")) {
    return "the last words differ";
  }
  if (ends.StateWithin(kCalls) != State::kRevoked) return "it is used later";
  ends.payloads.End(absl::UnavailableError("it does not come"));
  return "";
}

}  // namespace troupe::comm
