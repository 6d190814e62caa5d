// What a rank asks its loader for, and what it may run of it, under credits:
// batches are loaded ahead, but only so far. Plain data, without actors.
//
//   LoadWindow window({StepKind::kTrain, /*first=*/0, /*end=*/1000});
//   while (auto request = window.NextRequest()) Send(loader, *request);
//   window.OnLoaded(std::move(loaded), /*asked=*/request.count);  // an answer
//   while (auto run = window.NextRun(/*until=*/granted)) Send(compute, *run);
//   window.finished();                      // everything was handed out
//
// Answers come in the order of the requests. One with fewer steps than were
// asked for says where the data end.
//
// Steps travel in chunks of about 1 MiB of data: large enough that a message
// costs nothing beside it, small enough to stay in a second-level cache. The
// first answer tells how large a step is.
//
// Threads: one at a time.

#ifndef ACTORS_STRANDS_LOAD_WINDOW_H_
#define ACTORS_STRANDS_LOAD_WINDOW_H_

#include <cstdint>
#include <deque>
#include <limits>
#include <optional>

#include "actors/protocol/messages.h"

namespace troupe::actors {

class LoadWindow {
 public:
  struct Options {
    StepKind kind = StepKind::kTrain;
    std::int64_t first = 0;
    // The steps are those below.
    std::int64_t end = std::numeric_limits<std::int64_t>::max();
    // Number of steps that may be loaded and not yet run; two chunks, where
    // that is more.
    std::int64_t ahead_max = 1;
    // Limit on the steps of one run.
    std::int64_t run_steps_max = std::numeric_limits<std::int64_t>::max();
  };

  explicit LoadWindow(const Options& options);

  // The next request to send, which takes its credits; nothing where there are
  // none, or nothing is left to ask for.
  std::optional<LoadRequest> NextRequest();
  // `asked`: the number of steps in the request that this answers.
  void OnLoaded(Loaded loaded, std::int64_t asked);
  // The next steps to run, all below `until`; their credits are free again.
  std::optional<RunSteps> NextRun(std::int64_t until);
  // The first step that has not been handed out.
  std::int64_t next_run() const { return next_run_; }
  // All steps have been handed out, and no answer is to come.
  bool finished() const { return next_run_ >= end_ && requests_ == 0; }

 private:
  void ChooseChunk(const Loaded& loaded);

  const Options options_;
  std::int64_t end_;
  std::int64_t next_request_, next_run_;
  std::int64_t ahead_ = 0;  // steps asked for or loaded, not yet run
  std::int64_t chunk_ = 1;  // steps per request
  bool chunk_chosen_ = false;
  int requests_ = 0;  // without an answer
  std::deque<Loaded> loaded_;
};

}  // namespace troupe::actors

#endif  // ACTORS_STRANDS_LOAD_WINDOW_H_
