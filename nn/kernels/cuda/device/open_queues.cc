#include "nn/kernels/cuda/device/open_queues.h"

#include <utility>

#include "absl/strings/str_join.h"
#include "base/check.h"

namespace troupe::nn::cuda {
namespace {

constexpr const char* kQueueNames[kNumQueues] = {
    "compute", "copy", "read back", "comm", "comm 1", "comm 2", "comm 3"};

}  // namespace

OpenQueues::OpenQueues(std::shared_ptr<Streams> streams,
                       std::shared_ptr<EventPool> events, absl::Status* status)
    : streams_(std::move(streams)),
      events_(std::move(events)),
      status_(*status) {
  open_.reserve(kNumQueues);
}

absl::Status OpenQueues::Open(Queue queue) {
  if (is_open(queue)) return absl::OkStatus();
  TROUPE_RETURN_IF_ERROR(streams_->Open(queue));
  const int i = static_cast<int>(queue);
  queues_[i].emplace(kQueueNames[i], streams_->Of(queue), events_, &status_);
  open_.push_back(queue);
  return absl::OkStatus();
}

std::string OpenQueues::InFlight() const {
  std::vector<std::string> in_flight;
  for (Queue queue : open_) {
    std::string text = queues_[static_cast<int>(queue)]->InFlight();
    if (!text.empty()) in_flight.push_back(std::move(text));
  }
  return absl::StrJoin(in_flight, "; ");
}

bool OpenQueues::ask_again() const {
  for (Queue queue : open_) {
    if (queues_[static_cast<int>(queue)]->asks_again()) return true;
  }
  return false;
}

void OpenQueues::AddOldest(Watcher::Marks& marks) const {
  for (Queue queue : open_) {
    auto mark = queues_[static_cast<int>(queue)]->Oldest();
    if (mark != nullptr) marks.push_back(std::move(mark));
  }
}

void OpenQueues::CompleteAll(const absl::Status& status) {
  for (Queue queue : open_) {
    while (auto ended = Of(queue).TakeOldest()) ended->Finish(status);
  }
  for (Queue queue : open_) {
    for (const base::Event& event : Of(queue).DropHeld()) {
      event.Complete(status);
    }
  }
}

}  // namespace troupe::nn::cuda
