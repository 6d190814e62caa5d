// The states that one rank can be in while its table runs, each with what its
// cursor offers there; for the search of all_orders.h.
//
//   RankStates states(table, /*bound=*/3, /*has_peers=*/ends_by_itself);
//   const int first = states.at(0).offered;
//   const int next = states.After(/*state=*/0, {RankEvent::kStart, first});
//   states.at(next).computing;     // the forward that has begun
//   states.error();                // "" while nothing is wrong
//
// A state is made when it is first asked for, by a real TableCursor that is led
// there from the start of the step, and kept. What takes no time is done as
// soon as it is offered: sends, updates, collectives without peers; one with
// peers is started.

#ifndef TESTS_PIPELINE_RANK_STATES_H_
#define TESTS_PIPELINE_RANK_STATES_H_

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "pipeline/table/schedule.h"
#include "pipeline/table/table_cursor.h"

namespace troupe::pipeline {

struct RankEvent {
  enum Kind {
    kStart,    // the offered compute action starts
    kBuckets,  // the computing chunk's buckets are ready before its end
    kEnd,      // a compute action or collective ends, or a message arrives
  };
  Kind kind = kStart;
  int action = 0;
};

class RankStates {
 public:
  static constexpr int kActionsMax = 64;

  struct State {
    std::uint64_t done = 0;     // a bit for each action
    std::uint64_t started = 0;  // actions that have started or ended
    std::uint64_t ready = 0;    // a bit for each chunk: its buckets
    int computing = -1;         // an action, or none
    int offered = -1;           // action to compute next, or none
    int alive = 0;              // forwards whose backward has not ended
    int before = -1;            // the state that it was first reached from
    RankEvent by;
  };

  // `bound`: limit on State::alive. `has_peers`: per action, whether it is a
  // collective with other ranks.
  RankStates(const StepTable& table, int bound, std::vector<bool> has_peers);

  const StepTable& table() const { return cursor_.table(); }
  const State& at(int state) const { return states_[state]; }
  int size() const { return static_cast<int>(states_.size()); }
  bool IsComplete(int state) const { return at(state).done == all_; }
  // Returns whether the action that computes is the last to add to its chunk's
  // gradients, and has not made the buckets ready.
  bool HasBuckets(int state) const;

  // Returns the state after an event that may happen in `state`; -1: an error.
  int After(int state, const RankEvent& event);
  // Returns the first error, or "".
  const std::string& error() const { return error_; }
  // Returns the actions that have not ended.
  std::string Unfinished(int state) const;
  // Returns the event that led from one to the other as text: "F0" for a start,
  // "F0." for an end.
  std::string EventBetween(int from, int to) const;

 private:
  using Key = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;

  const Action& ActionOf(int id) const { return table().actions[id]; }
  std::string ToString(const RankEvent& event) const;
  // Brings the cursor to `state`.
  void Lead(int state);
  // Applies `event` to `state`; the cursor is in `state`, and moves on. Returns
  // false if the event is wrong.
  bool Change(State& state, const RankEvent& event);
  bool Start(State& state, int id);
  void Finish(State& state, int id);
  // Starts all actions that take no time. Returns false after an error.
  bool Settle(State& state);
  bool IsReduced(const Action& action) const;
  bool IsThere(const State& state, const Signal& need) const;
  // Returns the reason why `id` must not start in `state`, or null.
  const char* WrongStart(const State& state, int id) const;
  // Records the error and returns false.
  bool Wrong(int id, const char* what);

  TableCursor cursor_;
  const int bound_;
  const std::vector<bool> has_peers_;
  std::uint64_t all_ = 0;
  std::vector<int> buckets_;      // per chunk
  std::vector<int> last_writes_;  // per chunk: its last B or W
  std::vector<State> states_;
  absl::flat_hash_map<Key, int> numbers_;
  // Per state, event's kind and action: the next state; -1: not computed yet.
  std::vector<std::vector<int>> after_;
  std::string error_;
};

}  // namespace troupe::pipeline

#endif  // TESTS_PIPELINE_RANK_STATES_H_
