// Small jobs of the ready-made models, for tests that remember their bits.
//
//   JobSpec spec = GptJob(/*dp=*/2, /*pp=*/2);
//
// Each has three steps (LeNetJob() takes the number) on Troupe's own plain
// loops, gradients in several buckets, and reductions on the communication
// strand. A job of two stages is cut in the middle.

#ifndef TESTS_ACTORS_JOBS_BITS_BIT_JOBS_H_
#define TESTS_ACTORS_JOBS_BITS_BIT_JOBS_H_

#include <cstdint>

#include "actors/spec/job_spec.h"
#include "base/cpu_isa.h"
#include "nn/models/gpt2.h"

namespace troupe::actors {

// Makes the job compute by Troupe's own loops for `isa`, without oneDNN, which
// generates other code for other makers of CPUs. Products of bf16 are computed
// in f32: AVX-512 has the same bits on CPUs that multiply bf16 and on others.
void UseOwnLoops(base::CpuIsa isa, JobSpec& spec);

// SGD with Nesterov's momentum, and gradients clipped by their common norm.
void ClipByNorm(JobSpec& spec);

// The job in bf16, with master values and gradients in f32; AdamW with averages
// of the parameters.
void TrainInBF16(JobSpec& spec);

// TinyCnnJob() with three micro-batches of 8 samples on each replica; SGD with
// momentum.
JobSpec LeNetJob(int dp, int pp, std::int64_t steps = 3);

// ResNet-18 with 4 channels, on images of 8x8; SGD with momentum. Two
// micro-batches of two samples on each replica.
JobSpec ResNetJob(int dp, int pp);

// Two blocks, 16 wide, on images of 8x8; AdamW. Four micro-batches of two
// samples on each replica.
JobSpec VitJob(int dp, int pp);

// Four blocks, 16 wide, on four tokens; the head is tied to the embedding.
nn::Gpt2Options SmallGptOptions();
// AdamW with averages of the parameters and a learning rate that changes. Four
// micro-batches of two samples on each replica.
JobSpec GptJob(int dp, int pp, const nn::Gpt2Options& options);
inline JobSpec GptJob(int dp, int pp) {
  return GptJob(dp, pp, SmallGptOptions());
}

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_JOBS_BITS_BIT_JOBS_H_
