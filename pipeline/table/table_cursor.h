// Progress of a rank in its table: which actions have ended, which signals have
// been given, and which action may run next. Pure state, no actors, no tensors.
//
//   TableCursor cursor(table);
//   cursor.Begin();
//   while (!cursor.complete()) {
//     int next = cursor.NextRunnable(/*busy=*/false);
//     if (next < 0) {
//       AwaitSignal();
//       continue;
//     }
//     cursor.Start(next);
//     Run(table.actions[next]);
//     cursor.Finish(next);
//   }
//
// Actions may overtake each other once their needs are met; among those that
// may run, the first in the table is chosen. The collectives (LR, NR, TR, AR,
// RU, PN, AG, GV) of one group start strictly in table order, whichever is
// ready first: the ranks of a group pair them by order. Collectives of other
// groups do not wait for each other, unless each micro-batch is reduced: a
// round then waits for the end of the one before, so that only time would say
// whether LR or TR overtakes it, and not the same on all ranks. LR, TR, AR and
// AG then start in table order, too. NR, which stands behind the gathers and
// comes before them, follows all reductions by its needs.
//
// Cost: a step is linear in the table and its needs, in any order of signals. A
// signal decrements a count in each action that waits for it, and NextRunnable
// finds the first action whose count is zero (ready_set.h). Begin copies some
// bytes per action. Only the constructor allocates.

#ifndef PIPELINE_TABLE_TABLE_CURSOR_H_
#define PIPELINE_TABLE_TABLE_CURSOR_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/group_id.h"
#include "pipeline/table/ready_set.h"
#include "pipeline/table/schedule.h"
#include "pipeline/table/signal_waiters.h"

namespace troupe::pipeline {

// Movable but not copyable, since parts of its state point into one block.
class TableCursor {
 public:
  // `buckets`: number of buckets of each chunk that give signals; at least the
  // table's.
  TableCursor(StepTable table, const std::vector<int>& buckets);
  // For a table of one chunk.
  explicit TableCursor(StepTable table, int buckets = 0)
      : TableCursor(std::move(table), std::vector<int>{buckets}) {}

  TableCursor(TableCursor&&) = default;
  TableCursor& operator=(TableCursor&&) = default;

  const StepTable& table() const { return table_; }

  // Starts a step: no action has ended, no signal is given.
  void Begin();
  // Returns the first action that may start now, or -1. `busy`: whether a
  // compute action is running, so that no other is returned. Receives are never
  // returned.
  int NextRunnable(bool busy) const {
    const int other = ready_[0].First();
    if (busy) return other;
    const int compute = ready_[1].First();
    // As unsigned numbers, -1 is above all others.
    return static_cast<int>(
        std::min(static_cast<unsigned>(other), static_cast<unsigned>(compute)));
  }
  void Start(int action);
  void Finish(int action);
  void Give(Signal signal);
  // Gives the signals of a bucket whose gradients of a micro-batch are
  // complete; `last`: in the last backward of the step.
  void GiveGradients(int bucket, int chunk, int micro_batch, bool last);
  bool Given(Signal signal) const {
    const int slot = waiters_.SlotOf(signal);
    return slot >= 0 && given_[slot] != 0;
  }

  bool complete() const { return left_ == 0; }
  // Returns whether only updates, gathers of updated values and collectives
  // that have started are left, so that the step has nothing more to compute,
  // reduce or send.
  bool draining() const { return busy_ == 0; }
  // Returns whether `action`, which is no receive, may start.
  bool Runnable(int action) const {
    return missing_[action] == 0 && IsNext(action);
  }
  // Returns the actions that have not ended, for errors: "B1 AR0 UP0".
  std::string Unfinished() const;

 private:
  // Properties that follow from an action's kind and position.
  struct Role {
    bool compute = false;
    bool receive = false;
    bool drains = false;  // draining() does not wait for it
    int group = -1;       // launch order of a collective
    int following = -1;   // next collective of the same group, or -1
  };
  static constexpr int kStarted = 1 << 30;

  void FindRoles();
  // Returns the group in whose order a collective starts.
  GroupId OrderOf(const Action& collective) const;
  void LayOutState();
  bool started(int action) const { return missing_[action] >= kStarted; }
  // Returns whether `action` is the next collective of its group, or none.
  bool IsNext(int action) const {
    const int group = roles_[action].group;
    return group < 0 || heads_[group] == action;
  }
  void Raise(int slot);
  // Adds the action to the ready ones if it may start.
  void Offer(int action);

  StepTable table_;
  SignalWaiters waiters_;
  int drains_ = 0;                // actions that draining() does not wait for
  std::vector<Role> roles_;       // per action
  std::vector<int> first_heads_;  // per group: its first collective

  // The state of the step: one block, so that Begin is one copy.
  std::vector<std::byte> state_, state_at_start_;
  ReadySet ready_[2];  // [1]: compute actions; [0]: others
  // Per action: needs not given yet; kStarted more once it has started.
  int* missing_ = nullptr;
  int* heads_ = nullptr;           // per group: its next collective
  std::uint8_t* given_ = nullptr;  // per slot
  int left_ = 0;
  int busy_ = 0;  // number that draining() waits for
  int reduced_ = 0;
};

}  // namespace troupe::pipeline

#endif  // PIPELINE_TABLE_TABLE_CURSOR_H_
