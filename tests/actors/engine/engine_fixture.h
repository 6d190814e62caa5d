// The parts of a small job (tests/actors/sim/small_job.h), for tests of the
// step engine's parts on plain threads: plan, kernels and batches of each rank.
//
//   const EngineFixture one({/*ranks=*/1, Numbers::kExact});
//   auto chunk = one.MakeChunk(/*stage=*/0, &listener);
//   chunk->BeginStep(StepKind::kTrain, 0, one.Batches(/*rank=*/0, /*step=*/0));

#ifndef TESTS_ACTORS_ENGINE_ENGINE_FIXTURE_H_
#define TESTS_ACTORS_ENGINE_ENGINE_FIXTURE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/chunks/chunk.h"
#include "actors/chunks/step/step_trace.h"
#include "actors/spec/job_spec.h"
#include "pipeline/plan.h"
#include "tests/actors/sim/small_job.h"

namespace troupe::actors {

class EngineFixture {
 public:
  // `edit` changes the spec before the plan is made from it.
  explicit EngineFixture(
      const SmallJobOptions& job,
      const std::function<void(JobSpec& spec)>& edit = nullptr);

  const JobSpec& spec() const { return spec_; }
  const pipeline::Plan& plan() const { return plan_; }

  std::unique_ptr<Chunk> MakeChunk(int stage, Chunk::Listener* listener) const;
  // The scalars that updates read (BucketUpdates::Update).
  const nn::Tensor& scalars() const { return scalars_; }
  // Sets them to those of this step.
  void SetScalars(const Chunk& chunk, std::int64_t step,
                  double loss_count) const;
  // Returns the rank's micro-batches: consecutive samples of the dataset. All
  // ranks together have the same samples for every number of ranks.
  StepBatches Batches(int rank, std::int64_t step) const;

 private:
  JobSpec spec_;
  pipeline::Plan plan_;
  std::unique_ptr<StepTrace> trace_;
  nn::CachingAllocator allocator_;
  nn::Tensor scalars_;
};

using ParameterValues = std::map<std::string, std::vector<double>>;
// Returns the parameters by name, as doubles.
ParameterValues ValuesOf(const nn::ParameterArena& arena);

// Records the signals of buckets as text: "ready 0 released 0".
class BucketLog : public Chunk::Listener {
 public:
  void BucketReady(int, int bucket, int) override { Append("ready", bucket); }
  void BucketReleased(int, int bucket) override { Append("released", bucket); }
  const std::string& text() const { return text_; }

 private:
  void Append(const char* what, int bucket);
  std::string text_;
};

// Runs a whole step of a chunk that is the whole model on one rank: forward,
// backward and update of every bucket. Fails the test on errors.
void TrainStep(const EngineFixture& fixture, Chunk& chunk, std::int64_t step,
               const StepBatches& batches);

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_ENGINE_ENGINE_FIXTURE_H_
