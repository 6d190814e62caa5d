#include "comm/spanning/plan/send_schedule.h"

#include <algorithm>
#include <utility>

namespace troupe::comm::internal {
namespace {

// Returns the limit on pieces whose parts a process sends before they are
// computed. All processes send the pieces for a target in the same order, so
// that no two wait for each other. With few peers the limit is the number of
// pieces that a slow link with full queues has in transit until a credit
// returns: with fewer, an urgent collective would share the link with others.
int PiecesAheadMax(int members) {
  return std::max(16, 64 / std::max(1, members - 1));
}

}  // namespace

void SendSchedule::Make(const GroupLayout& layout, const TransferPlan& plan) {
  plan_ = &plan;
  self_ = layout.self();
  ahead_max_ = PiecesAheadMax(layout.members());
  windows_.resize(layout.members());
  order_.clear();
  for (int i = 0; i < plan.pieces(); ++i) {
    for (int m = 0; m < layout.members(); ++m) {
      if (!plan.SendsFrames(i, self_, m)) continue;
      order_.push_back(i);
      break;
    }
  }
  Sort();
  Restart();
}

void SendSchedule::Restart() {
  next_ = 0;
  for (int m = 0; m < static_cast<int>(windows_.size()); ++m) {
    int out = 0, in = 0;
    for (int i = 0; i < plan_->pieces(); ++i) {
      if (plan_->BuffersParts(i, self_, m)) ++out;
      if (plan_->BuffersParts(i, m, self_)) ++in;
    }
    windows_[m].ahead = 0;
    windows_[m].credits_expected = std::max(out - ahead_max_, 0);
    windows_[m].credits_due = std::max(in - ahead_max_, 0);
  }
}

// Orders pieces so that every process begins with those that the next one
// computes, and not all send to the same process.
void SendSchedule::Sort() {
  const int members = static_cast<int>(windows_.size());
  std::vector<std::pair<int, int>> keys(plan_->pieces());
  for (int i = 0; i < plan_->pieces(); ++i) {
    const TransferPlan::Piece& piece = plan_->piece(i);
    int to = piece.owner;
    const std::vector<bool>& wants = plan_->block_of(i).wants;
    if (to == TransferPlan::kEveryone &&
        std::count(wants.begin(), wants.end(), true) == 1) {
      to = static_cast<int>(std::find(wants.begin(), wants.end(), true) -
                            wants.begin());
    }
    const bool goes_on = i > 0 && plan_->piece(i - 1).block == piece.block &&
                         plan_->piece(i - 1).owner == piece.owner;
    keys[i] = {goes_on ? keys[i - 1].first + 1 : 0,
               to < 0 ? 0 : (to - self_ + members) % members};
  }
  std::stable_sort(order_.begin(), order_.end(),
                   [&](int a, int b) { return keys[a] < keys[b]; });
}

bool SendSchedule::MayGo() const {
  const int i = order_[next_];
  for (int m = 0; m < static_cast<int>(windows_.size()); ++m) {
    if (windows_[m].ahead >= ahead_max_ && plan_->BuffersParts(i, self_, m)) {
      return false;
    }
  }
  return true;
}

int SendSchedule::TakeNext() {
  const int i = order_[next_++];
  for (int m = 0; m < static_cast<int>(windows_.size()); ++m) {
    if (plan_->BuffersParts(i, self_, m)) ++windows_[m].ahead;
  }
  return i;
}

bool SendSchedule::TakeCredit(int member) {
  Window& window = windows_[member];
  if (window.credits_expected == 0 || window.ahead == 0) return false;
  --window.credits_expected;
  --window.ahead;
  return true;
}

bool SendSchedule::GiveCredit(int i, int member) {
  Window& window = windows_[member];
  if (window.credits_due == 0 || !plan_->BuffersParts(i, member, self_)) {
    return false;
  }
  --window.credits_due;
  return true;
}

}  // namespace troupe::comm::internal
