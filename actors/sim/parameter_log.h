// Remembers the parameters of a simulated job after each step, as hashes, and
// compares the ranks that hold the same ones; and two runs with each other.
//
//   ParameterLog log;
//   log.Note(rank, step, arena);              // after each step of each rank
//   absl::Status status = log.status();       // do replicas agree?
//   absl::Status same = Compare(log, other);  // do the runs?
//
// Parameters are told apart by their names, so that runs on different meshes
// compare too. Equal means to the bit. Threads: one.

#ifndef ACTORS_SIM_PARAMETER_LOG_H_
#define ACTORS_SIM_PARAMETER_LOG_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "nn/arena/parameter_arena.h"

namespace troupe::actors {

class ParameterLog {
 public:
  // Returns a hash of all of the arena's parameters. `step` counts from 0.
  std::uint64_t Note(int rank, std::int64_t step,
                     const nn::ParameterArena& arena);

  // The first difference among the ranks of a job.
  //   kFailedPrecondition: names the ranks, the step and the parameter.
  const absl::Status& status() const { return status_; }

  // The first difference in the steps that both have.
  //   kFailedPrecondition: names the step and the parameter, or says that there
  //     is no such step.
  friend absl::Status Compare(const ParameterLog& a, const ParameterLog& b);

 private:
  struct Value {
    std::uint64_t hash;
    int rank;  // the first that had it
  };

  std::map<std::int64_t, std::map<std::string, Value>> steps_;
  absl::Status status_;
};

}  // namespace troupe::actors

#endif  // ACTORS_SIM_PARAMETER_LOG_H_
