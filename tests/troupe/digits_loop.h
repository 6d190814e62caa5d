// A hand-written DDP loop on drawn digits, and the job that it does the work
// of, for tests that compare their bits.
//
//   DigitsRun run;
//   ASSERT_TRUE(Spawn(DigitsLoop(Rule::kSgd, &run), Ranks(2)).ok());
//   EXPECT_EQ(run.losses, DigitsJobLosses(DigitsJob(Rule::kSgd, 2)));

#ifndef TESTS_TROUPE_DIGITS_LOOP_H_
#define TESTS_TROUPE_DIGITS_LOOP_H_

#include <functional>
#include <optional>
#include <vector>

#include "actors/job.h"
#include "nn/tensor/dtype.h"
#include "troupe/ddp.h"
#include "troupe/program.h"

namespace troupe {

inline constexpr int kDigitsSteps = 6;
// Samples of all ranks in a step.
inline constexpr int kDigitsBatch = 16;

// Results of a run, on rank 0.
struct DigitsRun {
  std::vector<double> losses;
  std::vector<float> parameters;  // the first layer's, after the last step
};

enum class Rule { kSgd, kAdamW };

struct DigitsOptions {
  int micro_batches = 1;
  DDPOptions ddp = {};
  bool step_in_backward = false;
  // Called with the DDP before the first step; null: nothing.
  std::function<void(Rank& rank, DDP& ddp)> prepare = nullptr;
};

// Returns the loop, which writes to `run`.
Program DigitsLoop(Rule rule, DigitsRun* run,
                   const DigitsOptions& options = {});

// Returns the same job.
actors::JobSpec DigitsJob(
    Rule rule, int ranks,
    std::optional<nn::DType> reduction_dtype = std::nullopt);

// Returns its losses, of ranks in threads.
std::vector<double> DigitsJobLosses(const actors::JobSpec& spec);

// Returns the numbers of a tensor on the rank's device.
std::vector<float> ValuesOn(Rank& rank, const Tensor& tensor);

}  // namespace troupe

#endif  // TESTS_TROUPE_DIGITS_LOOP_H_
