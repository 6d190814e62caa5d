// Jobs whose ranks have pieces of layers (mesh.tp), on emulated GPUs: the bits
// are the same in every order of streams and calls, and the numbers are those
// of the CPU and of one rank.

#include <cstdint>
#include <string>

#include "actors/job.h"
#include "data/subset.h"
#include "gtest/gtest.h"
#include "nn/models/gpt2.h"
#include "nn/optim/layerwise.h"
#include "tests/actors/emulated_job.h"
#include "tests/actors/sim/divided_jobs.h"
#include "tests/actors/test_job.h"
#include "tests/base/seeds.h"

namespace troupe::actors {
namespace {

// Returns two steps of a GPT whose 7 tokens make a padded piece of the
// vocabulary, with clipped gradients, and an evaluation.
JobSpec GptOnGpus(const std::string& device, const Layout& layout) {
  JobSpec spec = GptJob(layout, SgdThatClips());
  spec.model = [] {
    nn::Gpt2Options options;
    options.dropout = 0.1;
    options.layers = 1;
    options.heads = 2;
    options.width = 8;
    options.context = 4;
    options.vocab_size = 7;
    return *nn::MakeGpt2(options);
  };
  if (layout.pp == 2) spec.plan.cuts = {"ln_f"};
  spec.kernels = nullptr;  // the device has its own
  spec.device = *nn::Device::Parse(device);
  spec.plan.global_batch_size /= 2;
  spec.steps = 2;
  spec.test = *data::MakeSubset(spec.train, 0, 5);
  spec.eval_every = 2;
  return spec;
}

// Expects the losses, norms and evaluations of one rank on a CPU, too.
void ExpectOneRanksNumbers(const std::string& device, const Layout& layout,
                           std::uint64_t seeds) {
  SCOPED_TRACE(layout.ToString() + ", " + device);
  const JobSpec spec = GptOnGpus(device, layout);
  ExpectTheSameBitsInEveryOrder(spec, Seeds(seeds));
  ExpectNear(SimulatedOnGpus(spec, /*seed=*/0).reports,
             ReportsOf(GptOnGpus("cpu", {1, 1, 1})));
}

TEST(TensorJobTest, TwoGpusAreOneRank) {
  ExpectOneRanksNumbers("cuda", {2, 1, 1}, 10);
}

TEST(TensorJobTest, TwoRanksOnAGpuAreOneRank) {
  ExpectOneRanksNumbers("cuda:0", {2, 1, 1}, 5);
}

// The ranks have communicators along tp and along dp, made and used in one
// order on all.
TEST(TensorJobTest, ReplicasOfPieces) {
  ExpectOneRanksNumbers("cuda", {2, 2, 1, /*zero=*/1}, 10);
  ExpectOneRanksNumbers("cuda", {2, 2, 1, /*zero=*/2}, 3);
  ExpectOneRanksNumbers("cuda:0", {2, 2, 1, /*zero=*/0}, 2);
}

TEST(TensorJobTest, RanksThatShareTokens) {
  ExpectOneRanksNumbers("cuda", {2, 2, 1, /*zero=*/0, /*shares_tokens=*/true},
                        5);
}

TEST(TensorJobTest, StagesOfPieces) {
  ExpectOneRanksNumbers("cuda", {2, 1, 2}, 3);
}

// Norms of parameters are added up over pieces, and over slices of them.
TEST(TensorJobTest, UpdatesByNorms) {
  for (const int stage : {0, 1}) {
    JobSpec spec = GptOnGpus("cuda", {2, 2, 1, stage});
    spec.optimizer = nn::LambOptions();
    ExpectTheSameBitsInEveryOrder(spec, Seeds(3));
  }
}

TEST(TensorJobTest, OnThreadsOfItsOwn) {
  ExpectTheSameBitsOnThreads(GptOnGpus("cuda", {2, 2, 1}), Seeds(3));
}

}  // namespace
}  // namespace troupe::actors
