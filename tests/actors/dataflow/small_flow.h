// Dataflows of small integers, for tests: what a stage was given can be read
// off what it gives.
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

// A tensor i64 [1].
nn::Tensor NumberTensor(std::int64_t value);
std::int64_t NumberIn(const nn::Tensor& tensor);

struct Numbers {
  std::vector<std::int64_t> values;
  bool ended = false;  // AtEnd() was called
};

struct SmallFlow {
  int count = 20;
  int capacity = 2;
  // In which process each stage is, where there are several.
  int square_in = 0, sink_in = 0;
  // The handler of stage "square" throws at this number; -1: never.
  int throws_at = -1;
};

// source -> square -> sink: the squares of 0, 1, ... go into `got`, which is
// emptied first.
Dataflow Chain(const SmallFlow& options, Numbers* got);

// A source of pairs, whose halves part and meet again; and results that go back
// to the stage that they came from:
//
//     source -> a -> double ------> sum -> sums -> double -> back -> sink
//            -> b ----------------> sum
//
// `got` are 3 i, then 3 i doubled again in `double`: 6 i.
Dataflow Diamond(const SmallFlow& options, Numbers* got);

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_DATAFLOW_SMALL_FLOW_H_
