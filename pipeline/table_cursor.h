// Where a rank stands in its table: which actions are done, which signals have
// come, and what may run next. Pure state, no actors, no tensors.
//
//   TableCursor cursor(table);
//   cursor.Begin();
//   while (!cursor.complete()) {
//     int next = cursor.NextRunnable(/*busy=*/false);
//     if (next < 0) { ... wait for a signal ...; continue; }
//     cursor.Start(next);
//     ... run it ...
//     cursor.Finish(next);
//   }
//
// Actions of different kinds may overtake each other when what they need is
// there; among those that may run, the first of the table is chosen.
// The collectives (LR, AR, RU) of one group start strictly in table order,
// whatever becomes ready first: the ranks of a group pair them by order.
// Collectives of different groups do not wait for each other.

#ifndef PIPELINE_TABLE_CURSOR_H_
#define PIPELINE_TABLE_CURSOR_H_

#include <cstdint>
#include <vector>

#include "pipeline/group_id.h"
#include "pipeline/schedule.h"

namespace troupe::pipeline {

// F, B, I, W: long, and run one at a time on the compute strand.
bool IsCompute(ActionKind kind);
// RA, RG: finished by a message from outside.
bool IsReceive(ActionKind kind);
// LR, AR, RU.
bool IsCollective(ActionKind kind);
// The ranks that a collective pairs: all for LR, those along dp for AR and RU.
GroupId GroupOf(ActionKind kind);

class TableCursor {
 public:
  // `buckets`: how many give signals; at least the table's.
  explicit TableCursor(StepTable table, int buckets = 0);

  const StepTable& table() const { return table_; }

  // Starts a step: nothing done, no signals.
  void Begin();
  // The first action that may start now, or -1. `busy`: a compute action is
  // running, so only the others are offered. Receives are never offered.
  int NextRunnable(bool busy) const;
  void Start(int action);
  void Finish(int action);
  void Give(Signal signal);
  bool Given(Signal signal) const { return slots_[SlotOf(signal)] != 0; }

  bool complete() const { return left_ == 0; }
  // The actions that are not done, for errors: "B1 AR0 UP0".
  std::string Unfinished() const;

 private:
  // The collectives of one group, in launch order.
  struct LaunchOrder {
    GroupId group;
    std::vector<int> actions;
    std::size_t next = 0;
  };

  int SlotOf(Signal signal) const;
  LaunchOrder& OrderOf(GroupId group);
  bool MayStart(int action) const;

  StepTable table_;
  int buckets_;
  std::vector<std::vector<int>> needs_;  // slots, per action
  std::vector<LaunchOrder> orders_;      // one a group
  std::vector<int> order_of_;            // per action: of orders_, or -1
  std::vector<std::uint8_t> slots_;      // signals given
  std::vector<std::uint8_t> started_;
  int left_ = 0;
  int reduced_ = 0;
  int first_unstarted_ = 0;
};

}  // namespace troupe::pipeline

#endif  // PIPELINE_TABLE_CURSOR_H_
