#include "comm/spanning/plan/direct_access.h"

#include <algorithm>

namespace troupe::comm::internal {

bool DirectAccess::AllLetGo(int self) const {
  for (int m = 0; m < static_cast<int>(let_go_.size()); ++m) {
    if (m != self && !let_go_[m]) return false;
  }
  return true;
}

void DirectAccess::Begin(const GroupLayout& layout, const TransferPlan& plan,
                         std::size_t element_bytes, bool updates) {
  work_.emplace(layout, plan, element_bytes, updates);
  inputs_.resize(layout.size());
  outputs_.resize(layout.size());
}

bool DirectAccess::AddTask(int tasks_max) {
  if (tasks_ >= tasks_max || !work_->claimable()) return false;
  ++tasks_;
  return true;
}

bool DirectAccess::Claim(DirectWork::Part* part) {
  if (work_->Claim(part)) return true;
  --tasks_;
  return false;
}

void DirectAccess::EndTask() {
  --tasks_;
  work_->Done();
}

void DirectAccess::Clear() {
  lends_ = false;
  std::fill(let_go_.begin(), let_go_.end(), false);
  work_.reset();
  inputs_.clear();
  outputs_.clear();
  tasks_ = 0;
  over_ = false;
}

}  // namespace troupe::comm::internal
