// A small data-parallel training loop as a trainer's host code has it: CUDA and
// NCCL calls of one host thread, two ranks, a compute and a communication
// stream each. It knows nothing of the emulation, and can be given a bug.
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
inline constexpr int kBuckets = 3;  // one layer each
inline constexpr int kN = 64;       // of a layer
inline constexpr int kSteps = 5;
inline constexpr int kStepsLate = 2;  // that a loss is read after its step

enum class Bug {
  kNone,
  kNoWaitForGradient,   // comm stream does not wait for the backward kernel
  kNoWaitForParameter,  // compute stream does not wait for the update
  kLossReadEarly,       // the host reads the loss without its event
  kFreedEarly,          // gradients freed on the compute stream while comm's
  kSlotReusedEarly,     // the pinned batch refilled while its copy is pending
  kUsedBeforeMalloc,    // comm clears a buffer that compute allocates
  kWrongEvent,          // one bucket's event recorded for every bucket
  kEventTooSoon,        // the event recorded before the kernel it stands for
  kNullStream,          // the update on the null stream
  kStackPointer,        // a captured copy reads a variable on the stack
  kScalarByValue,       // the captured kernel got the learning rate by value
  kSwappedOrder,        // rank 1 reduces its buckets in another order
  kInProgressIgnored,   // ncclInProgress not awaited before the event
};
const char* NameOf(Bug bug);

struct StepOptions {
  bool graph = false;  // captured once and replayed, else eager
  bool nonblocking = false;
  Bug bug = Bug::kNone;
};

struct StepResult {
  std::vector<float> parameters[kRanks];  // all buckets
  std::vector<float> losses[kRanks];      // of each step
  bool has_failed = false;                // a call answered an error

  bool operator==(const StepResult& other) const;  // bits
};

StepResult TrainTwoRanks(const StepOptions& options);

// The same in one plain loop.
StepResult PlainLoop();

// The learning rate, and element i of a rank's batch.
float RateOf(int step);
float BatchOf(int rank, int step, int i);

}  // namespace emulated_cuda_test

#endif  // TESTS_BASE_CUDA_EMULATED_TWO_RANK_STEP_H_
