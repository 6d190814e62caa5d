#include "comm/device/device_group.h"

#include <utility>

#include "base/check.h"
#include "comm/device/device_check.h"
#include "comm/device/device_state.h"
#include "comm/device/queued_communicator.h"

namespace troupe::comm {
namespace {

using internal::CheckOnDevice;
using internal::DeviceState;

class DeviceCommunicator final : public QueuedCommunicator {
 public:
  DeviceCommunicator(std::shared_ptr<DeviceState> state,
                     std::unique_ptr<Communicator> messages)
      : QueuedCommunicator("a device group"),
        state_(std::move(state)),
        messages_(std::move(messages)),
        rank_(messages_->rank()) {}
  ~DeviceCommunicator() override { state_->Leave(rank_); }

  int rank() const override { return rank_; }
  int size() const override { return state_->size(); }

  bool UseDevice(DeviceWork* work) override {
    work_ = work;
    return true;
  }

  absl::StatusOr<Event> Start(const Collective& collective,
                              Event after) override {
    TROUPE_CHECK(work_ != nullptr, "UseDevice() comes before Start()");
    TROUPE_RETURN_IF_ERROR(CheckOnDevice(collective, rank_, size()));
    TROUPE_ASSIGN_OR_RETURN(DeviceState::Joined joined,
                            state_->Join(rank_, collective, std::move(after)));
    if (joined.meeting == nullptr) return std::move(joined.done);
    const absl::Status carried = internal::Carry(*joined.meeting, *work_);
    if (!carried.ok()) {
      state_->Abort(carried);
      joined.done.Complete(carried);
      return carried;
    }
    joined.done.Follow(work_->Record());
    state_->NoteLaunched(joined.done);
    joined.done.OnReady([state = state_](const absl::Status& status) {
      if (!status.ok()) state->Abort(status);
    });
    return std::move(joined.done);
  }

  bool HandsOver() const override { return true; }
  absl::Status CheckMessages() const override { return absl::OkStatus(); }
  absl::StatusOr<Event> StartSend(int to, std::uint32_t tag,
                                  const nn::Tensor& data,
                                  Event after) override {
    return EndsGroup(messages_->StartSend(to, tag, data, std::move(after)));
  }
  absl::StatusOr<Event> StartRecv(int from, std::uint32_t tag,
                                  const nn::Tensor& into,
                                  Arrival* arrival) override {
    return EndsGroup(messages_->StartRecv(from, tag, into, arrival));
  }

  std::vector<Waiting> Waits() const override {
    std::vector<Waiting> all = state_->Waits(rank_);
    for (Waiting& message : messages_->Waits()) {
      all.push_back(std::move(message));
    }
    return all;
  }
  void Abort(absl::Status status) override {
    state_->Abort(status);
    messages_->Abort(std::move(status));
  }

 private:
  // Makes a message that fails end the collectives, too.
  absl::StatusOr<Event> EndsGroup(absl::StatusOr<Event> started) const {
    if (!started.ok()) return started;
    started->OnReady([state = state_](const absl::Status& status) {
      if (!status.ok()) state->Abort(status);
    });
    return started;
  }

  const std::shared_ptr<DeviceState> state_;
  const std::unique_ptr<Communicator> messages_;
  const int rank_;
  DeviceWork* work_ = nullptr;
};

}  // namespace

Group MakeDeviceGroup(const LocalGroupOptions& options) {
  TROUPE_CHECK(options.size >= 1 && options.size <= kLocalGroupSizeMax,
               "a group has 1 to 256 ranks");
  TROUPE_CHECK(options.in_flight_max >= 1, "a rank may start a collective");
  auto state = std::make_shared<DeviceState>(options);
  LocalGroupOptions messages;
  messages.size = options.size;
  messages.in_flight_max = 1;  // no collectives
  messages.hands_over = true;
  Group ranks;
  for (std::unique_ptr<Communicator>& rank : MakeLocalGroup(messages)) {
    ranks.push_back(
        std::make_unique<DeviceCommunicator>(state, std::move(rank)));
  }
  return ranks;
}

}  // namespace troupe::comm
