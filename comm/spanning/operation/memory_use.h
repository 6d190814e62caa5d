// Counts the users of a group's memory (ranges and buffers): tasks, links, and
// members that access it by reference. An aborted group ends, and its events
// complete, once there are none.
//
//   memory.BeginSend(member);       // a link reads our memory
//   memory.EndSend(member);
//   if (memory.free()) Complete(events);
//
// A member to which this process has *lent* memory (direct_transfers.h) uses it
// until it lets go: of one collective, or of the whole group. Memory lent to a
// lost member is no longer counted; it is not reused (Switchboard::OnLost).
//
// Not thread-safe: used under the group's lock.

#ifndef COMM_SPANNING_OPERATION_MEMORY_USE_H_
#define COMM_SPANNING_OPERATION_MEMORY_USE_H_

#include <vector>

namespace troupe::comm::internal {

class MemoryUse {
 public:
  // `self` is the member that is this process.
  MemoryUse(int members, int self) : self_(self), by_member_(members) {}

  // Returns whether the memory has no user.
  bool free() const { return users_ == 0; }
  // Returns the members that use it: their links, or they themselves.
  std::vector<int> Holders() const;

  // A task in this process.
  void BeginTask() { ++users_; }
  void EndTask() { --users_; }
  // A task that accesses other members' memory, too.
  void BeginReach();
  void EndReach();

  // A frame that a link is sending, or is receiving in place.
  void BeginSend(int member);
  void EndSend(int member);
  void BeginReceive(int member);
  void EndReceive(int member);
  bool receiving_from(int member) const {
    return by_member_[member].receiving > 0;
  }

  // Records that the other members may access memory here, in one collective.
  void LendToAll();
  // Records that a member has let go of one collective.
  void LetGo(int member);
  // Records that a member will never access memory of the group again.
  void LetGoAll(int member);
  // Records the loss of the link to a member: frames being received from it
  // will never be complete.
  void Lose(int member);

  // Records that peers may lend memory to this process.
  void ExpectLending() { lending_ = true; }
  // Returns true once, when this process accesses no memory of its peers any
  // more in an aborted group: the peers to which this matters are then
  // notified.
  bool TakeLetGoAll();

 private:
  struct ByMember {
    int sending = 0, receiving = 0;  // numbers of frames
    int lent = 0;                    // number of collectives
    bool let_go_all = false;
  };

  const int self_;
  int users_ = 0;  // includes those by member
  std::vector<ByMember> by_member_;
  int reaching_ = 0;  // number of tasks
  // Whether the group lends or borrows memory, so that peers wait for a
  // notification.
  bool lending_ = false;
  bool notified_ = false;
};

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_OPERATION_MEMORY_USE_H_
