// Where a rank stands in its table: which actions are done, which signals have
// come, and what may run next. Pure state, no actors, no tensors.
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
// Actions of different kinds may overtake each other when what they need is
// there; among those that may run, the first of the table is chosen.
// The collectives (LR, NR, TR, AR, RU) of one group start strictly in table
// order, whatever becomes ready first: the ranks of a group pair them by order.
// Collectives of different groups do not wait for each other.
//
// Cost: a step is linear in the table and its needs, whatever the order in
// which signals come. A signal counts down what waits for it, and NextRunnable
// finds the smallest of the actions that wait for nothing (ready_set.h). Begin
// is one copy of some bytes per action. After the constructor nothing
// allocates.

#ifndef PIPELINE_TABLE_CURSOR_H_
#define PIPELINE_TABLE_CURSOR_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/ready_set.h"
#include "pipeline/schedule.h"

namespace troupe::pipeline {

// Moved, not copied: the parts of its state point into one block.
class TableCursor {
 public:
  // `buckets`, by chunk: how many give signals; at least the table's.
  TableCursor(StepTable table, const std::vector<int>& buckets);
  // For a table of one chunk.
  explicit TableCursor(StepTable table, int buckets = 0)
      : TableCursor(std::move(table), std::vector<int>{buckets}) {}

  TableCursor(TableCursor&&) = default;
  TableCursor& operator=(TableCursor&&) = default;

  const StepTable& table() const { return table_; }

  // Starts a step: nothing done, no signals.
  void Begin();
  // The first action that may start now, or -1. `busy`: a compute action is
  // running, so only the others are offered. Receives are never offered.
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
  bool Given(Signal signal) const { return given_[SlotOf(signal)] != 0; }

  bool complete() const { return left_ == 0; }
  // Whether all that is left are collectives that have started, and updates:
  // nothing that the step computes or sends.
  bool draining() const { return busy_ == 0; }
  // Whether nothing holds up the start of `action`, which is no receive.
  bool Runnable(int action) const { return missing_[action] == 0; }
  // The actions that are not done, for errors: "B1 AR0 UP0".
  std::string Unfinished() const;

 private:
  // What an action's kind and place say, at hand.
  struct Role {
    bool compute = false;
    bool receive = false;
    bool update = false;
    int group = -1;      // of a collective: number of its launch order
    int following = -1;  // of a collective: the next of its group, or -1
  };
  static constexpr int kStarted = 1 << 30;

  // A signal's place in given_.
  int SlotOf(Signal signal) const;
  void FindRoles();
  void LinkNeeds();
  void LayOutState();
  bool started(int action) const { return missing_[action] >= kStarted; }
  void Raise(int slot);
  // Lists the action as ready where nothing holds it up.
  void Offer(int action);

  StepTable table_;
  std::vector<int> first_bucket_;  // by chunk: its number among all buckets
  int buckets_ = 0;                // of all chunks
  int updates_ = 0;                // actions that update
  std::vector<Role> roles_;        // per action
  std::vector<int> first_heads_;   // per group: its first collective
  // The actions that wait for slot s: waiting_[first_waiting_[s]], up to, but
  // without, first_waiting_[s + 1].
  std::vector<int> first_waiting_;
  std::vector<int> waiting_;

  // The state of the step: one block, so that Begin is one copy.
  std::vector<std::byte> state_, state_at_start_;
  ReadySet ready_[2];  // [1]: compute actions; [0]: others
  // Per action: needs not given yet; kStarted more once it has started.
  int* missing_ = nullptr;
  int* heads_ = nullptr;           // per group: its next collective
  std::uint8_t* given_ = nullptr;  // per slot
  int left_ = 0;
  int busy_ = 0;  // of those, what draining() waits for
  int reduced_ = 0;
};

}  // namespace troupe::pipeline

#endif  // PIPELINE_TABLE_CURSOR_H_
