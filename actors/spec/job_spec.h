// The description of a job: model, data, optimizer, mesh, and when to evaluate,
// save and stop. Plain data; nothing starts until Job::Start().
//
//   JobSpec spec;
//   spec.model = [] { return nn::MakeMlp({784, 512, 10}, {}); };
//   spec.loss = nn::ops::CrossEntropyLoss();
//   spec.optimizer = nn::SgdOptions{/*lr=*/0.02, /*momentum=*/0.9};
//   spec.train = splits.train;
//   spec.plan.mesh = pipeline::Mesh(/*dp=*/2);
//   spec.plan.global_batch_size = 64;
//   spec.steps = 1000;
//
// The fields are in parts by concern: see also job_fields.h, job_parts.h and
// checkpoint_options.h; training_step.h for a step of one's own in place of the
// loss.

#ifndef ACTORS_SPEC_JOB_SPEC_H_
#define ACTORS_SPEC_JOB_SPEC_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/spec/bucket_reduction.h"
#include "actors/spec/checkpoint_options.h"
#include "actors/spec/cluster_options.h"
#include "actors/spec/job_fields.h"
#include "actors/spec/job_parts.h"
#include "actors/spec/open_mesh.h"
#include "data/dataset.h"
#include "nn/kernels/kernels.h"
#include "nn/optim/optimizer.h"
#include "nn/serialize/weight_file.h"
#include "pipeline/cut_search.h"
#include "pipeline/plan.h"

namespace troupe::actors {

// Weights that a job begins with unless it is resumed from a checkpoint.
struct InitOptions {
  // Path of a safetensors file (nn/serialize/weight_file.h) that every process
  // can read. Empty: parameters are drawn by their initialisers.
  std::string from;
  // Whether names and shapes must be the model's. False: a tensor that the file
  // lacks, or has in another shape, keeps its initial value; one that only the
  // file has is left out.
  bool strict = true;
  // Returns what to change so that a file with these differences fits, as a
  // clause of an error; empty: nothing is known. Null: the same.
  std::function<std::string(const nn::WeightDifferences& differences)> advise;
  // The file, open. The job sets it.
  std::shared_ptr<const nn::WeightFile> weights;
};

// Cuts of the model that follow from the measured costs of its parts
// (actors/planning/pipeline_choice.h).
struct OpenPipeline {
  // Returns seconds and bytes of the model's parts, as MeasureCosts() does
  // (actors/planning/measure_costs.h).
  std::function<absl::StatusOr<pipeline::ModelCosts>(const JobSpec& spec)>
      measure;
  // Sets the cuts by the costs, and if `chooses_schedule`, placement and
  // schedule. Before the call, `plan` is complete with others.
  std::function<absl::Status(const pipeline::ModelCosts& costs,
                             pipeline::PlanOptions& plan)>
      set;
  bool chooses_schedule = false;
};

struct JobSpec : ObjectiveOptions,
                 NumberOptions,
                 DeviceOptions,
                 LoadingOptions,
                 DescribedSettings,
                 EvaluationOptions,
                 WatchOptions {
  // Makes the model. Called for each rank in the rank's own thread, several at
  // once; and before, to make the plan, in the caller of Job::Start().
  JobModel model;
  InitOptions init;
  // Makes a rank's optimizer, or its options, from which each rank makes one. A
  // job without `train` needs none.
  JobOptimizer optimizer;

  // Null: the job trains nothing, but evaluates `test` once, as the checkpoint
  // or the first weights have the model, and ends. It needs `test`, has no
  // length and saves nothing; `seed` need not be the checkpoint's.
  JobData train;
  JobData test;  // samples of evaluations; null: no evaluation
  std::uint64_t seed = 0;

  // Mesh, batch sizes, buckets.
  pipeline::PlanOptions plan;
  // Reduction of gradients over replicas in place of an all-reduce. One without
  // a name: none. The job puts its name into the plan.
  CommunicationHook hook;
  // Set: the mesh is open, and `plan.mesh` has only the number of ranks.
  // Process 0 chooses after the dtype and before the cuts; the plan records the
  // choice, and a job that is resumed from a checkpoint keeps it as long as it
  // fits.
  std::optional<OpenMesh> open_mesh;
  // Set: cuts are open. Process 0 measures after it has chosen the dtype, and
  // before it makes the plan, which records the cuts; a job that is resumed
  // from a checkpoint keeps the cuts of that checkpoint's plan.
  std::optional<OpenPipeline> open_pipeline;

  // Place of this process among several; none: all ranks are in this one.
  std::optional<ClusterOptions> cluster;

  // Length of the job, with the steps before a resume: in steps, or in passes
  // over `train`. At most one of them is set.
  std::int64_t steps = 0;
  std::int64_t epochs = 0;

  CheckpointOptions checkpoint;
};

// Checks what needs neither model nor data: numbers, and how many ranks there
// are. Job::Start() does it first. Errors name the field (base/field_error.h).
absl::Status CheckNumbers(const JobSpec& spec);
// Checks that there are samples for what the job is to do. Errors name the
// field.
absl::Status CheckSamples(const JobSpec& spec);

// Returns the samples that tell the shape of all: `train`, or `test` of a job
// that trains nothing.
inline const JobData& SamplesOf(const JobSpec& spec) {
  return spec.train != nullptr ? spec.train : spec.test;
}

// Returns an optimizer of the job.
//   kInvalidArgument: the factory made none.
absl::StatusOr<std::unique_ptr<nn::Optimizer>> MakeOptimizer(
    const JobSpec& spec);

// Returns the plan of the job's model for its samples.
//   Errors of pipeline::MakePlan().
absl::StatusOr<pipeline::Plan> MakeJobPlan(
    const JobSpec& spec, const pipeline::PlanOptions& options);

// Opens the kernel set of the rank that is number `local_rank` of its host.
absl::StatusOr<std::unique_ptr<nn::Kernels>> OpenRankKernels(
    const JobSpec& spec, int local_rank);

}  // namespace troupe::actors

#endif  // ACTORS_SPEC_JOB_SPEC_H_
