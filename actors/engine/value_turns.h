// The gathers and releases of values in a rank's table, for the readers that
// wait for them (ZeRO's stage 3; pipeline/table/add_gathers.h).
//
//   const ValueTurns turns(table, plan, rank);
//   TROUPE_ASSIGN_OR_RETURN(const ValueTurns::Wait wait,
//                           turns.WaitFor(step, /*chunk=*/0, parameter, k));
//   wait.gather;      // action that brings the bucket
//   wait.passed;      // releases of buckets that the reader is done with
//
// A reader that comes to a part of the model is done with the buckets that end
// before it, so that they can be released, and others gathered, while it runs.
//
// Threads: the compute strand's.

#ifndef ACTORS_ENGINE_VALUE_TURNS_H_
#define ACTORS_ENGINE_VALUE_TURNS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "actors/engine/step_in_flight.h"
#include "nn/autograd/parameter.h"
#include "pipeline/plan.h"
#include "pipeline/table/schedule.h"

namespace troupe::actors {

class ValueTurns {
 public:
  // A turn of a bucket, as positions in the table.
  struct Turn {
    int gather = -1, release = -1;
    int reader = -1;  // the last one
  };
  struct Wait {
    int gather = -1;
    std::vector<Turn> passed;
  };

  ValueTurns(const pipeline::StepTable& table, const pipeline::Plan& plan,
             int rank);

  // Returns what the compute action under way waits for before it reads the
  // parameter, which is in `bucket` of its chunk.
  //   kInvalidArgument: the model reads the parameter again, after parts for
  //     which its bucket was released; names it.
  absl::StatusOr<Wait> WaitFor(const StepInFlight& step, int chunk,
                               const nn::Parameter& parameter,
                               int bucket) const;

 private:
  // First and last part of a chunk's forward that read something.
  struct Parts {
    int first = 0, last = 0;
  };
  struct OfBucket {
    Parts parts;
    std::vector<Turn> turns;
  };
  struct OfChunk {
    std::vector<OfBucket> buckets;
    std::map<std::string, Parts> parameters;  // keyed by name
  };
  // A release in the course of a reader.
  struct Release {
    int bucket = 0;
    Turn turn;
  };

  void AddChunk(const pipeline::StagePlan& stage);
  void AddTurns(const pipeline::StepTable& table);

  std::vector<OfChunk> chunks_;
  // Keyed by position of the reader: its releases, and the next compute action.
  std::map<int, std::vector<Release>> releases_;
  std::map<int, int> ends_;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_VALUE_TURNS_H_
