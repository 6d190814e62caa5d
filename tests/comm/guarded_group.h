// Wraps a local group so that its ranges may lie in the guarded memory of
// queued devices. The local group sees them as host memory, which is open only
// while a chunk of work runs.
//
//   auto memory = std::make_shared<nn::GuardedMemory>(/*bytes_max=*/64 << 20);
//   std::vector<std::unique_ptr<Communicator>> group =
//       GuardGroup(MakeLocalGroup({2}), memory);
//   group[0]->Start(AllReduce(op, device_range), /*after=*/device_event);
//
// The group does not keep ranges alive: the code that starts a collective must,
// as on a GPU.

#ifndef TESTS_COMM_GUARDED_GROUP_H_
#define TESTS_COMM_GUARDED_GROUP_H_

#include <memory>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "nn/kernels/queued/guarded_memory.h"
#include "nn/kernels/queued/queued_kernels.h"
#include "tests/comm/wrapped_communicator.h"

namespace troupe::comm {

class GuardedCommunicator final : public WrappedCommunicator {
 public:
  GuardedCommunicator(std::unique_ptr<Communicator> inner,
                      std::shared_ptr<nn::GuardedMemory> memory)
      : WrappedCommunicator(std::move(inner)), memory_(std::move(memory)) {}

  absl::StatusOr<Event> Start(const Collective& collective,
                              Event after) override {
    Collective seen = collective;
    seen.range = HostView(collective.range);
    seen.input = HostView(collective.input);
    return inner().Start(seen, std::move(after));
  }
  bool Progress() override {
    const nn::GuardedMemory::Opened opened(*memory_);
    return inner().Progress();
  }

  // The side that completes the pair copies the message, possibly within this
  // call.
  absl::StatusOr<Event> StartSend(int to, std::uint32_t tag,
                                  const nn::Tensor& data,
                                  Event after) override {
    const nn::GuardedMemory::Opened opened(*memory_);
    const Event ready = Event::Make();
    after.OnReady([memory = memory_, ready](const absl::Status& status) {
      const nn::GuardedMemory::Opened opened(*memory);
      ready.Complete(status);
    });
    return inner().StartSend(to, tag, HostView(data), ready);
  }
  absl::StatusOr<Event> StartRecv(int from, std::uint32_t tag,
                                  const nn::Tensor& into,
                                  Arrival* arrival) override {
    const nn::GuardedMemory::Opened opened(*memory_);
    return inner().StartRecv(from, tag, HostView(into), arrival);
  }

 private:
  static nn::Tensor HostView(const nn::Tensor& tensor) {
    return tensor.defined() ? nn::HostView(tensor) : tensor;
  }

  const std::shared_ptr<nn::GuardedMemory> memory_;
};

inline std::vector<std::unique_ptr<Communicator>> GuardGroup(
    std::vector<std::unique_ptr<Communicator>> group,
    const std::shared_ptr<nn::GuardedMemory>& memory) {
  for (std::unique_ptr<Communicator>& rank : group) {
    rank = std::make_unique<GuardedCommunicator>(std::move(rank), memory);
  }
  return group;
}

}  // namespace troupe::comm

#endif  // TESTS_COMM_GUARDED_GROUP_H_
