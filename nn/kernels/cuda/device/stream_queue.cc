#include "nn/kernels/cuda/device/stream_queue.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/cuda/cuda_status.h"

namespace troupe::nn::cuda {

using base::CudaStatus;

void StreamQueue::Ended::Finish(const absl::Status& status) {
  for (const std::function<void()>& action : actions) action();
  // Releases the memory before the event's callbacks run.
  actions.clear();
  kept.clear();
  event.Complete(status);
}

absl::Status StreamQueue::Run(const char* name, const Work& work) {
  Note(name);
  return work();
}

absl::Status StreamQueue::Give(const char* name, Work work) {
  if (!held()) return Run(name, work);
  Item item;
  item.name = name;
  item.work = std::move(work);
  held_.push_back(std::move(item));
  return absl::OkStatus();
}

bool StreamQueue::Call(Item& item) {
  if (!item.begun) Note(item.name);
  item.begun = !item.until_true();
  return !item.begun;
}

absl::Status StreamQueue::GiveUntilTrue(const char* name,
                                        std::function<bool()> work) {
  Item item;
  item.name = name;
  item.until_true = std::move(work);
  if (held() || !Call(item)) held_.push_back(std::move(item));
  return absl::OkStatus();
}

absl::Status StreamQueue::Record(const base::Event& event) {
  if (!held()) return RecordNow(event);
  Item item;
  item.event = event;
  held_.push_back(std::move(item));
  return absl::OkStatus();
}

absl::Status StreamQueue::RecordNow(const base::Event& event) {
  TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<const EventMark> mark,
                          EventPool::Record(pool_, stream_));
  Ended ended;
  ended.mark = mark;
  ended.event = event;
  ended.kept.swap(kept_);
  ended.actions.swap(actions_);
  ended.given = given_;
  running_.push_back(std::move(ended));
  // Callbacks of the event may call this queue again.
  event.SetOrigin(std::move(mark));
  return absl::OkStatus();
}

absl::StatusOr<bool> StreamQueue::WaitNow(const base::Event& event) {
  if (event.ready()) {
    status_.Update(event.status());
    return true;
  }
  const std::shared_ptr<const EventMark> mark = EventMark::Of(event);
  if (mark == nullptr) return false;
  if (mark->stream() == stream_) return true;  // the stream is in order
  TROUPE_RETURN_IF_ERROR(
      CudaStatus(cudaStreamWaitEvent(stream_, mark->event(), /*flags=*/0),
                 "cudaStreamWaitEvent"));
  return true;
}

absl::Status StreamQueue::Wait(const base::Event& event,
                               const std::function<void()>& hold) {
  if (!held()) {
    TROUPE_ASSIGN_OR_RETURN(const bool given, WaitNow(event));
    if (given) return absl::OkStatus();
  }
  Item item;
  item.is_wait = true;
  item.event = event;
  held_.push_back(std::move(item));
  hold();
  return absl::OkStatus();
}

absl::StatusOr<bool> StreamQueue::Advance() {
  bool any = false;
  while (held()) {
    Item& item = held_.front();
    if (item.is_wait) {
      TROUPE_ASSIGN_OR_RETURN(const bool given, WaitNow(item.event));
      if (!given) break;
    } else if (item.until_true) {
      if (!Call(item)) break;
    } else if (item.work) {
      TROUPE_RETURN_IF_ERROR(Run(item.name, item.work));
    } else {
      TROUPE_RETURN_IF_ERROR(RecordNow(item.event));
    }
    held_.pop_front();
    any = true;
  }
  return any;
}

absl::Status StreamQueue::RecordForKept() {
  if (kept_.empty() && actions_.empty()) return absl::OkStatus();
  return RecordNow(base::Event());
}

absl::StatusOr<bool> StreamQueue::OldestIsDone() {
  TROUPE_RETURN_IF_ERROR(RecordForKept());
  if (running_.empty()) return false;
  const cudaError_t state = cudaEventQuery(running_.front().mark->event());
  if (state == cudaErrorNotReady) {
    cudaGetLastError();  // no error: the next launch must not find it
    return false;
  }
  TROUPE_RETURN_IF_ERROR(CudaStatus(state, "cudaEventQuery"));
  return true;
}

std::optional<StreamQueue::Ended> StreamQueue::TakeOldest() {
  if (running_.empty()) return std::nullopt;
  std::optional<Ended> ended = std::move(running_.front());
  running_.pop_front();
  done_ = ended->given;
  return ended;
}

std::vector<base::Event> StreamQueue::DropHeld() {
  std::vector<base::Event> events;
  std::deque<Item> held;
  held.swap(held_);
  for (Item& item : held) {
    if (item.is_recording()) events.push_back(std::move(item.event));
  }
  return events;
}

std::string StreamQueue::InFlight() const {
  const std::uint64_t all = given_ - done_;
  if (all == 0) return "";
  const std::uint64_t known = std::min<std::uint64_t>(all, names_.size());
  std::vector<const char*> last;
  for (std::uint64_t i = given_ - known; i < given_; ++i) {
    last.push_back(names_[i % names_.size()]);
  }
  return absl::StrCat(
      name_, ": ", absl::StrJoin(last, ", "),
      known < all ? absl::StrCat(" (the last ", known, " of ", all, ")") : "");
}

}  // namespace troupe::nn::cuda
