// Dataflows of small integers, for tests: the output of a stage shows its
// inputs.
//
//   Numbers got;
//   const Dataflow flow = Chain({/*count=*/100, /*capacity=*/2}, &got);
//   RunDataflow(flow);
//   got.values;                              // 0, 1, 4, 9, ...: in order

#ifndef TESTS_ACTORS_DATAFLOW_SMALL_FLOW_H_
#define TESTS_ACTORS_DATAFLOW_SMALL_FLOW_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "actors/dataflow/dataflow.h"

namespace troupe::actors {

// Returns a tensor i64 [1] with this value.
nn::Tensor NumberTensor(std::int64_t value);
std::int64_t NumberIn(const nn::Tensor& tensor);

struct Numbers {
  std::vector<std::int64_t> values;
  bool ended = false;  // whether AtEnd() was called
};

struct SmallFlow {
  int count = 20;
  int capacity = 2;
  // Processes of stage "square" ("double" in Diamond()) and of the sink; the
  // others live in process 0.
  int square_in = 0, sink_in = 0;
  // The handler of stage "square" throws at this number; -1: never.
  int throws_at = -1;
};

// Returns source -> square -> sink; the sink writes the squares of 0, 1, ... to
// `got`, which is emptied first.
Dataflow Chain(const SmallFlow& options, Numbers* got);

// Returns a flow with a source of pairs, whose halves take two ways and meet
// again, and with results that return to the stage that they came from:
//
//     source -> a -> double ------> sum -> sums -> double -> back -> sink
//            -> b ----------------> sum
//
// The sums are 3 i; `double` doubles them again, so `got` has 6 i.
Dataflow Diamond(const SmallFlow& options, Numbers* got);

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_DATAFLOW_SMALL_FLOW_H_
