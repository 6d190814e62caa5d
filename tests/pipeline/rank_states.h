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
#include "pipeline/schedule.h"
#include "pipeline/table_cursor.h"

namespace troupe::pipeline {

struct RankEvent {
  enum Kind {
    kStart,    // of the compute action that is offered
    kBuckets,  // of the chunk that computes: ready, before its backward ends
    kEnd,      // of the compute action, of a collective, or a message is there
  };
  Kind kind = kStart;
  int action = 0;
};

class RankStates {
 public:
  static constexpr int kActionsMax = 64;

  struct State {
    std::uint64_t done = 0;     // a bit for each action
    std::uint64_t started = 0;  // that are done, too
    std::uint64_t ready = 0;    // a bit for each chunk: its buckets
    int computing = -1;         // an action, or none
    int offered = -1;           // to compute next, or none
    int alive = 0;              // forwards whose backward has not ended
    int before = -1;            // the state that it was first reached from
    RankEvent by;
  };

  // `bound`: on State::alive. `has_peers`: by action, of collectives.
  RankStates(const StepTable& table, int bound, std::vector<bool> has_peers);

  const StepTable& table() const { return cursor_.table(); }
  const State& at(int state) const { return states_[state]; }
  int size() const { return static_cast<int>(states_.size()); }
  bool IsComplete(int state) const { return at(state).done == all_; }
  // Whether the action at work is the last that adds to its chunk's gradients,
  // and has not said so.
  bool HasBuckets(int state) const;

  // The state behind an event that may happen in `state`; -1: it is wrong.
  int After(int state, const RankEvent& event);
  // "" or the first thing that was wrong.
  const std::string& error() const { return error_; }
  // The actions that are not done.
  std::string Unfinished(int state) const;
  // The event that led from one to the other, for people: "F0" for a start,
  // "F0." for an end.
  std::string EventBetween(int from, int to) const;

 private:
  using Key = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;

  const Action& ActionOf(int id) const { return table().actions[id]; }
  std::string ToString(const RankEvent& event) const;
  // Leads the cursor to `state`.
  void Lead(int state);
  // What `event` makes of `state`; the cursor has come to `state`, and goes on.
  // False: it is wrong.
  bool Change(State& state, const RankEvent& event);
  bool Start(State& state, int id);
  void Finish(State& state, int id);
  // Starts all that takes no time; false: it is wrong.
  bool Settle(State& state);
  bool IsThere(const State& state, const Signal& need) const;
  // What is wrong with starting `id` in `state`, or null.
  const char* WrongStart(const State& state, int id) const;
  // Notes it; false.
  bool Wrong(int id, const char* what);

  TableCursor cursor_;
  const int bound_;
  const std::vector<bool> has_peers_;
  std::uint64_t all_ = 0;
  std::vector<int> buckets_;      // by chunk
  std::vector<int> last_writes_;  // by chunk: its last B or W
  std::vector<State> states_;
  absl::flat_hash_map<Key, int> numbers_;
  // By state, event's kind and action: the state behind; -1 not asked for yet.
  std::vector<std::vector<int>> after_;
  std::string error_;
};

}  // namespace troupe::pipeline

#endif  // TESTS_PIPELINE_RANK_STATES_H_
