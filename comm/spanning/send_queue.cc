#include "comm/spanning/send_queue.h"

namespace troupe::comm::internal {
namespace {

// Limit on the pieces of a group whose parts are being computed or sent: enough
// to keep the links busy. An urgent collective waits for at most that many.
constexpr int kWindow = 8;

}  // namespace

OpPtr SendQueue::TakeNext(int* piece) {
  if (sending_ >= kWindow) return nullptr;
  for (auto next = queue_.begin(); next != queue_.end(); ++next) {
    SendSchedule& schedule = next->second->sends;
    // A collective whose peers have no room yet does not delay others.
    if (!schedule.MayGo()) continue;
    const OpPtr op = next->second;
    *piece = schedule.TakeNext();
    if (schedule.empty()) queue_.erase(next);
    ++sending_;
    return op;
  }
  return nullptr;
}

}  // namespace troupe::comm::internal
