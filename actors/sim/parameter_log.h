// Records hashes of a simulated job's parameters after each step, and compares
// the ranks that hold the same parameters, and two runs.
//
//   ParameterLog log;
//   log.Note(rank, step, arena);              // after each step of each rank
//   absl::Status status = log.status();       // differences of replicas
//   absl::Status same = Compare(log, other);  // differences of runs
//
// Parameters are identified by name, and pieces along tp by their place too, so
// that runs on different meshes compare. Where ranks have slices of values, the
// hashes of all slices make up that of the parameter. Equal means to the bit.
// Threads: one.

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
  // Adds the arena's parameters after `step`, which counts from 0. Returns a
  // hash of all of them. `slices`: whether the rank has only the values of the
  // slices that it owns.
  std::uint64_t Note(int rank, std::int64_t step,
                     const nn::ParameterArena& arena, bool slices = false);

  // Returns the first difference between the ranks of a job.
  //   kFailedPrecondition: names the ranks, the step and the parameter.
  const absl::Status& status() const { return status_; }

  // Returns the first difference in the steps that both logs have.
  //   kFailedPrecondition: names the step and the parameter, or says that the
  //     logs have no step in common.
  friend absl::Status Compare(const ParameterLog& a, const ParameterLog& b);

 private:
  // A parameter, or what one owner has of it.
  struct Value {
    std::uint64_t hash;
    int rank;  // the first rank that was recorded with it
  };
  using Owner = int;
  using Parameter = std::map<Owner, Value>;

  // Returns a hash of all of the parameter.
  static std::uint64_t HashOf(const Parameter& parameter);

  std::map<std::int64_t, std::map<std::string, Parameter>> steps_;
  absl::Status status_;
};

}  // namespace troupe::actors

#endif  // ACTORS_SIM_PARAMETER_LOG_H_
