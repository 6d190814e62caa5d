// A group whose ranges lie in the guarded memory of queued devices: a local
// group that sees them as host memory, open while a chunk of work runs.
//
//   auto memory = std::make_shared<nn::GuardedMemory>(/*bytes_max=*/64 << 20);
//   std::vector<std::unique_ptr<Communicator>> group =
//       GuardGroup(MakeLocalGroup({2}), memory);
//   group[0]->Start(AllReduce(op, device_range), /*after=*/device_event);
//
// It holds no range: whoever starts a collective keeps it, as on a GPU.

#ifndef TESTS_COMM_GUARDED_GROUP_H_
#define TESTS_COMM_GUARDED_GROUP_H_

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "nn/kernels/queued/guarded_memory.h"
#include "nn/kernels/queued/queued_kernels.h"

namespace troupe::comm {

class GuardedCommunicator final : public Communicator {
 public:
  GuardedCommunicator(std::unique_ptr<Communicator> inner,
                      std::shared_ptr<nn::GuardedMemory> memory)
      : memory_(std::move(memory)), inner_(std::move(inner)) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  absl::StatusOr<Event> Start(const Collective& collective,
                              Event after) override {
    Collective seen = collective;
    seen.range = nn::HostView(collective.range);
    return inner_->Start(seen, std::move(after));
  }
  bool Progress() override {
    const nn::GuardedMemory::Opened opened(*memory_);
    return inner_->Progress();
  }
  void SetWakeup(std::function<void()> wakeup) override {
    inner_->SetWakeup(std::move(wakeup));
  }
  void Abort(absl::Status status) override { inner_->Abort(std::move(status)); }

 private:
  const std::shared_ptr<nn::GuardedMemory> memory_;
  const std::unique_ptr<Communicator> inner_;
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
