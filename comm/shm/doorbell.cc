#include "comm/shm/doorbell.h"

#include <algorithm>

namespace troupe::comm {
namespace {

// Returns an address that is unique among living threads.
const void* ThisThread() {
  static thread_local char mark = 0;
  return &mark;
}

}  // namespace

void Doorbell::Arm() {
  {
    absl::MutexLock lock(&mutex_);
    if (std::find(asleep_.begin(), asleep_.end(), ThisThread()) ==
        asleep_.end()) {
      asleep_.push_back(ThisThread());
    }
    any_asleep_.store(true, std::memory_order_seq_cst);
  }
  sleeps_here_->store(1, std::memory_order_seq_cst);
}

void Doorbell::RemoveThisThread() {
  absl::MutexLock lock(&mutex_);
  const auto here = std::find(asleep_.begin(), asleep_.end(), ThisThread());
  if (here != asleep_.end()) asleep_.erase(here);
  any_asleep_.store(!asleep_.empty(), std::memory_order_seq_cst);
}

bool Doorbell::Rearm() {
  if (!any_asleep_.load(std::memory_order_seq_cst)) return false;
  sleeps_here_->store(1, std::memory_order_seq_cst);
  return true;
}

}  // namespace troupe::comm
