// Emulates stages of other projects, for the bugs of known_bugs_test.cc:
// operations on one stream, of which each blocks the rest; messages that begin
// only when both ends have reached them; shapes that are sent before the
// tensors.
//
//   ReceiveFirst(table);                          // posted one compute early
//   ExchangeShapes(/*stage=*/1, /*stages=*/4, wait);
//   while (Awaited().count(message) == 0) wait.TakeNews(/*expected=*/true);
//
// Threads: one, that of a simulation; ForgetMessages() before each.

#ifndef TESTS_ACTORS_SIM_PLANTED_STREAMS_H_
#define TESTS_ACTORS_SIM_PLANTED_STREAMS_H_

#include <cstdint>
#include <set>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "actors/engine/fiber/strand_wait.h"
#include "pipeline/table/action_rules.h"
#include "pipeline/table/schedule.h"

namespace troupe {

// Makes the compute action before a receive wait for it, as if it followed it
// in one stream. That action is not the one that needs the received tensors.
inline void ReceiveFirst(pipeline::StepTable& table) {
  int compute = -1;
  for (int id = 0; id < static_cast<int>(table.actions.size()); ++id) {
    const pipeline::Action& action = table.actions[id];
    if (pipeline::IsCompute(action.kind)) compute = id;
    if (!pipeline::IsReceive(action.kind) || compute < 0) continue;
    table.actions[compute].needs.push_back({pipeline::SignalKind::kDone, id});
  }
}

// A message to a stage: step, stage, whether forward, micro-batch.
using Message = std::tuple<std::int64_t, int, bool, int>;

// The messages for which a stage waits without anything else to do.
inline std::set<Message>& Awaited() {
  static std::set<Message> messages;
  return messages;
}

// Ends of exchanges that stages have reached, as in "1 sends to 2".
inline std::set<std::string>& ExchangeEnds() {
  static std::set<std::string> ends;
  return ends;
}

inline void ForgetMessages() {
  Awaited().clear();
  ExchangeEnds().clear();
}

// Exchanges the shapes of activations forward and of gradients backward, before
// the first step. Each message begins when both ends have reached it. A stage
// at an end of the pipeline has one neighbour and reaches both messages at
// once; one in the middle sends both before it receives any, which deadlocks if
// two such stages are neighbours.
inline void ExchangeShapes(int stage, int stages, actors::StrandWait& wait) {
  std::set<std::string>& ends = ExchangeEnds();
  const auto end = [](int from, const char* does, int to) {
    return absl::StrCat(from, does, to);
  };
  const auto sends = [&](int to) { ends.insert(end(stage, " sends to ", to)); };
  const auto takes = [&](int from) {
    ends.insert(end(stage, " takes from ", from));
  };
  const auto sent = [&](int to) {
    while (ends.count(end(to, " takes from ", stage)) == 0) {
      wait.TakeNews(/*expected=*/true);
    }
  };
  const auto taken = [&](int from) {
    while (ends.count(end(from, " sends to ", stage)) == 0) {
      wait.TakeNews(/*expected=*/true);
    }
  };
  if (stage == 0 || stage + 1 == stages) {
    const int other = stage == 0 ? 1 : stage - 1;
    sends(other);
    takes(other);
    sent(other);
    taken(other);
    return;
  }
  for (const int other : {stage + 1, stage - 1}) {
    sends(other);
    sent(other);
  }
  for (const int other : {stage - 1, stage + 1}) {
    takes(other);
    taken(other);
  }
}

}  // namespace troupe

#endif  // TESTS_ACTORS_SIM_PLANTED_STREAMS_H_
