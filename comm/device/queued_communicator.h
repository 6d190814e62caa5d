// Base of communicators whose collectives are work of a device's queue: nothing
// runs inline, the host drives nothing, and there are no messages unless a
// derived class brings them.
//
//   class MyCommunicator final : public QueuedCommunicator {
//    public:
//     MyCommunicator() : QueuedCommunicator("a group of mine") {}
//     absl::StatusOr<Event> Start(const Collective& collective,
//                                 Event after) override;
//   };
//
// Errors: kUnimplemented for a missing operation, naming the kind of group.

#ifndef COMM_DEVICE_QUEUED_COMMUNICATOR_H_
#define COMM_DEVICE_QUEUED_COMMUNICATOR_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "comm/communicator.h"
#include "nn/tensor/tensor.h"

namespace troupe::comm {

class QueuedCommunicator : public Communicator {
 public:
  // `kind` is a string literal: "a device group".
  explicit QueuedCommunicator(const char* kind) : kind_(kind) {}

  absl::Status RunInline(const Collective& collective, absl::Duration) final {
    return absl::UnimplementedError(absl::StrCat(
        collective.ToString(), " in ", kind_, " is not run inline; start it"));
  }
  bool Progress() final { return false; }
  void SetWakeup(std::function<void()>) final {}
  absl::StatusOr<Event> StartSend(int, std::uint32_t, const nn::Tensor&,
                                  Event) override {
    return CheckMessages();
  }
  absl::StatusOr<Event> StartRecv(int, std::uint32_t, const nn::Tensor&,
                                  Arrival*) override {
    return CheckMessages();
  }
  absl::Status CheckMessages() const override {
    return absl::UnimplementedError(absl::StrCat(
        kind_, " has no messages; send them by a group of the host"));
  }

 private:
  const char* const kind_;
};

}  // namespace troupe::comm

#endif  // COMM_DEVICE_QUEUED_COMMUNICATOR_H_
