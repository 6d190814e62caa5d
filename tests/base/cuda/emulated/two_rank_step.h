// A small data-parallel training loop like the host code of a trainer: one host
// thread makes CUDA and NCCL calls for two ranks, each with a compute and a
// communication stream. It does not depend on the emulation. An option plants a
// bug in it.
//
//   StepOptions options;
//   options.graph = true;
//   options.bug = Bug::kNone;
//   EXPECT_TRUE(TrainTwoRanks(options) == PlainLoop());
//
// Threads: one.

#ifndef TESTS_BASE_CUDA_EMULATED_TWO_RANK_STEP_H_
#define TESTS_BASE_CUDA_EMULATED_TWO_RANK_STEP_H_

#include <vector>

namespace emulated_cuda_test {

inline constexpr int kRanks = 2;
inline constexpr int kBuckets = 3;  // each has one layer
inline constexpr int kN = 64;       // elements of a layer
inline constexpr int kSteps = 5;
inline constexpr int kStepsLate = 2;  // steps from a loss to its reading

enum class Bug {
  kNone,
  kNoWaitForGradient,   // comm stream does not wait for the backward kernel
  kNoWaitForParameter,  // compute stream does not wait for the update
  kLossReadEarly,       // the host reads the loss without its event
  kFreedEarly,          // gradients freed on compute while comm uses them
  kSlotReusedEarly,     // the pinned batch refilled while its copy is pending
  kUsedBeforeMalloc,    // comm clears a buffer that compute allocates
  kWrongEvent,          // one bucket's event recorded for every bucket
  kEventTooSoon,        // the event recorded before the kernel it stands for
  kNullStream,          // the update on the null stream
  kStackPointer,        // a captured copy reads a variable on the stack
  kScalarByValue,       // the captured kernel gets the learning rate by value
  kSwappedOrder,        // rank 1 reduces its buckets in another order
  kInProgressIgnored,   // ncclInProgress not awaited before the event
};
const char* NameOf(Bug bug);

struct StepOptions {
  bool graph = false;        // captures the step once and replays it
  bool nonblocking = false;  // uses non-blocking NCCL communicators
  Bug bug = Bug::kNone;
};

struct StepResult {
  std::vector<float> parameters[kRanks];  // all buckets
  std::vector<float> losses[kRanks];      // one per step
  bool has_failed = false;                // a call returned an error

  bool operator==(const StepResult& other) const;  // compares bits
};

StepResult TrainTwoRanks(const StepOptions& options);

// Computes the same result in one plain loop on the host.
StepResult PlainLoop();

// Return the learning rate of a step, and element i of a rank's batch.
float RateOf(int step);
float BatchOf(int rank, int step, int i);

}  // namespace emulated_cuda_test

#endif  // TESTS_BASE_CUDA_EMULATED_TWO_RANK_STEP_H_
