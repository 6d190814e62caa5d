// Base class of communicators with altered behaviour. It forwards every call to
// another communicator; a derived class overrides only some of them.
//
//   class Late : public comm::WrappedCommunicator {
//    public:
//     using WrappedCommunicator::WrappedCommunicator;
//     bool Progress() override { return late_ && inner().Progress(); }
//     ...
//   };

#ifndef TESTS_COMM_WRAPPED_COMMUNICATOR_H_
#define TESTS_COMM_WRAPPED_COMMUNICATOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "comm/communicator.h"

namespace troupe::comm {

class WrappedCommunicator : public Communicator {
 public:
  explicit WrappedCommunicator(std::unique_ptr<Communicator> inner)
      : inner_(std::move(inner)) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  bool UseDevice(DeviceWork* work) override { return inner_->UseDevice(work); }
  void UseRanges(absl::Span<const nn::Tensor> ranges) override {
    inner_->UseRanges(ranges);
  }
  absl::StatusOr<Event> Start(const Collective& collective,
                              Event after) override {
    return inner_->Start(collective, std::move(after));
  }
  bool Progress() override { return inner_->Progress(); }
  bool HandsOver() const override { return inner_->HandsOver(); }
  absl::Status CheckMessages() const override {
    return inner_->CheckMessages();
  }
  absl::StatusOr<Event> StartSend(int to, std::uint32_t tag,
                                  const nn::Tensor& data,
                                  Event after) override {
    return inner_->StartSend(to, tag, data, std::move(after));
  }
  absl::StatusOr<Event> StartRecv(int from, std::uint32_t tag,
                                  const nn::Tensor& into,
                                  Arrival* arrival) override {
    return inner_->StartRecv(from, tag, into, arrival);
  }
  void SetWakeup(std::function<void()> wakeup) override {
    inner_->SetWakeup(std::move(wakeup));
  }
  std::vector<Waiting> Waits() const override { return inner_->Waits(); }
  void Abort(absl::Status status) override { inner_->Abort(std::move(status)); }

 protected:
  Communicator& inner() { return *inner_; }

 private:
  const std::unique_ptr<Communicator> inner_;
};

}  // namespace troupe::comm

#endif  // TESTS_COMM_WRAPPED_COMMUNICATOR_H_
