// Jobs whose ranks have parts of a model, for tests that compare ways to divide
// it: pieces of layers along tp, stages along pp, slices along dp (ZeRO).
//
//   const Layout layout = {/*tp=*/2, /*dp=*/2, /*pp=*/1, /*zero=*/1};
//   const SimulatedRun run = Simulate(GptJob(layout, SgdThatClips()), seed);
//   ExpectNear(run.reports, one_rank.reports);

#ifndef TESTS_ACTORS_SIM_DIVIDED_JOBS_H_
#define TESTS_ACTORS_SIM_DIVIDED_JOBS_H_

#include <cstdint>
#include <string>

#include "actors/spec/job_spec.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {

using MakeOptimizerFn = decltype(JobSpec::optimizer);

struct Layout {
  int tp, dp, pp;
  int zero = 0;                // stage
  bool shares_tokens = false;  // PlanOptions::sequence_parallel
  std::string ToString() const;
};

// Returns the job on the mesh of the layout. From stage 2 on it keeps whole
// gradients until the last micro-batch, which gives the bits of stage 0.
JobSpec LaidOut(JobSpec spec, const Layout& layout);

MakeOptimizerFn SgdThatClips();
// AdamW that also skips steps and has averages.
MakeOptimizerFn AdamThatClips();

// Returns the exact variant of small_job.h with pieces, which evaluates after
// each step.
JobSpec ExactJob(const Layout& layout);

// Returns a job of 6 steps of a GPT with two blocks of 4 heads, 4 positions and
// 7 tokens.
JobSpec GptJob(const Layout& layout, const MakeOptimizerFn& optimizer,
               bool tie_head = true, double dropout = 0);

// Expects losses, norms and evaluations that differ by rounding alone.
void ExpectNear(const Reports& got, const Reports& want);

// Simulates the whole job; returns the path of the checkpoint at its end, in a
// new folder `name`.
std::string Saved(JobSpec spec, const std::string& name, std::uint64_t seed);
// Returns that of the first 3 steps of GptJob().
std::string ThreeSteps(const std::string& name, const Layout& layout,
                       const MakeOptimizerFn& optimizer);
// Returns the reports of the last 3, from such a checkpoint.
Reports From(const std::string& path, const Layout& layout,
             const MakeOptimizerFn& optimizer);

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_SIM_DIVIDED_JOBS_H_
