// Order and flow control of the pieces whose parts a process sends, in frames
// of their own, for one collective.
//
//   SendSchedule schedule;
//   schedule.Make(layout, plan);
//   while (!schedule.empty() && schedule.MayGo()) Send(schedule.TakeNext());
//   if (!schedule.TakeCredit(member)) return Broke(member);
//
// A process has a *window* towards each member: a limit on pieces whose parts
// it has sent and which the member has not computed yet. The member returns a
// *credit* for each piece that it computes. All processes know the number of
// pieces, so the last ones need no credit, and no credit arrives after the
// sender has finished.
//
// Not thread-safe: used under the group's lock.

#ifndef COMM_SPANNING_PLAN_SEND_SCHEDULE_H_
#define COMM_SPANNING_PLAN_SEND_SCHEDULE_H_

#include <cstddef>
#include <vector>

#include "comm/spanning/plan/layout.h"
#include "comm/spanning/plan/transfer_plan.h"

namespace troupe::comm::internal {

class SendSchedule {
 public:
  // Makes the schedule of this process; `layout` and `plan` outlive it.
  void Make(const GroupLayout& layout, const TransferPlan& plan);
  // Begins again, for another collective with the same plan.
  void Restart();

  // Returns all pieces with parts to send, in the order of sending.
  const std::vector<int>& pieces() const { return order_; }
  // Returns whether all have been sent.
  bool empty() const { return next_ == order_.size(); }
  // Returns whether the windows have room for the parts of the next piece.
  bool MayGo() const;
  // Returns the next piece, whose parts are sent now.
  int TakeNext();

  // Records a credit from a member; false: none is due from it.
  bool TakeCredit(int member);
  // Returns whether a credit is due to a member, since piece i was computed; it
  // is due once.
  bool GiveCredit(int i, int member);

 private:
  struct Window {
    int ahead = 0;  // pieces sent to the member, not computed there yet
    int credits_expected = 0, credits_due = 0;  // from, and to, the member
  };

  void Sort();

  const TransferPlan* plan_ = nullptr;
  int self_ = 0;
  std::vector<int> order_;
  std::size_t next_ = 0;         // index in order_
  std::vector<Window> windows_;  // index: member
  int ahead_max_ = 0;            // limit on Window::ahead
};

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_PLAN_SEND_SCHEDULE_H_
