// Prefetch window of a rank: decides which steps to request from the loader and
// which loaded steps may run. Credits limit how far batches are loaded ahead.
// It uses no actors.
//
//   LoadWindow window({StepKind::kTrain, /*first=*/0, /*end=*/1000});
//   while (auto request = window.NextRequest()) Send(loader, *request);
//   window.OnLoaded(std::move(loaded), /*asked=*/request.count);  // response
//   while (auto run = window.NextRun(/*until=*/granted)) Send(compute, *run);
//   window.finished();                      // all runs were returned
//
// Responses arrive in the order of the requests. One with fewer steps than were
// requested ends at the end of the data.
//
// A request is for about 1 MiB of data: large enough to make the cost of its
// messages negligible, small enough to stay in a second-level cache. The first
// response shows how large a step is.
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
    // Number of the step after the last one.
    std::int64_t end = std::numeric_limits<std::int64_t>::max();
    // Limit on the steps that are loaded or requested and not yet run; two
    // requests' steps, if that is more.
    std::int64_t ahead_max = 1;
    // Limit on the steps of one run.
    std::int64_t run_steps_max = std::numeric_limits<std::int64_t>::max();
  };

  explicit LoadWindow(const Options& options);

  // Takes credits and returns the next request to send. Returns none if no
  // credits are free or no step is left to request.
  std::optional<LoadRequest> NextRequest();
  // Adds the response to a request. `asked`: number of steps in that request.
  void OnLoaded(Loaded loaded, std::int64_t asked);
  // Returns the next steps to run, all below `until`, and frees their credits.
  std::optional<RunSteps> NextRun(std::int64_t until);
  // Returns the first step that NextRun() has not returned.
  std::int64_t next_run() const { return next_run_; }
  // Returns whether NextRun() has returned all steps and no response is
  // outstanding.
  bool finished() const { return next_run_ >= end_ && requests_ == 0; }

 private:
  void ChooseChunk(const Loaded& loaded);

  const Options options_;
  std::int64_t end_;
  std::int64_t next_request_, next_run_;
  std::int64_t ahead_ = 0;  // steps requested or loaded, not yet run
  std::int64_t chunk_ = 1;  // steps per request
  bool chunk_chosen_ = false;
  int requests_ = 0;  // number of requests without a response
  std::deque<Loaded> loaded_;
};

}  // namespace troupe::actors

#endif  // ACTORS_STRANDS_LOAD_WINDOW_H_
