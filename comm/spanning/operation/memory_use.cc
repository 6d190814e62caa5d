#include "comm/spanning/operation/memory_use.h"

#include <utility>

namespace troupe::comm::internal {

std::vector<int> MemoryUse::Holders() const {
  std::vector<int> holders;
  for (int m = 0; m < static_cast<int>(by_member_.size()); ++m) {
    const ByMember& of = by_member_[m];
    if (of.sending + of.receiving + of.lent > 0) holders.push_back(m);
  }
  return holders;
}

void MemoryUse::BeginReach() {
  ++users_;
  ++reaching_;
}

void MemoryUse::EndReach() {
  --users_;
  --reaching_;
}

void MemoryUse::BeginSend(int member) {
  ++users_;
  ++by_member_[member].sending;
}

void MemoryUse::EndSend(int member) {
  --users_;
  --by_member_[member].sending;
}

void MemoryUse::BeginReceive(int member) {
  ++users_;
  ++by_member_[member].receiving;
}

void MemoryUse::EndReceive(int member) {
  --users_;
  --by_member_[member].receiving;
}

void MemoryUse::LendToAll() {
  lending_ = true;
  for (int m = 0; m < static_cast<int>(by_member_.size()); ++m) {
    if (m == self_ || by_member_[m].let_go_all) continue;
    ++by_member_[m].lent;
    ++users_;
  }
}

void MemoryUse::LetGo(int member) {
  if (by_member_[member].lent == 0) return;
  --by_member_[member].lent;
  --users_;
}

void MemoryUse::LetGoAll(int member) {
  by_member_[member].let_go_all = true;
  users_ -= std::exchange(by_member_[member].lent, 0);
}

void MemoryUse::Lose(int member) {
  users_ -= std::exchange(by_member_[member].receiving, 0);
  LetGoAll(member);
}

bool MemoryUse::TakeLetGoAll() {
  if (reaching_ > 0 || !lending_) return false;
  return !std::exchange(notified_, true);
}

}  // namespace troupe::comm::internal
