// The job by which a Trainer evaluates a checkpoint: it has no training
// samples, so that it evaluates and ends.
//
//   TROUPE_ASSIGN_OR_RETURN(const actors::Checkpoint at,
//                           CheckpointAt(options, /*ckpt_path=*/"best"));
//   TROUPE_ASSIGN_OR_RETURN(
//       FitData first, LimitedData<&TrainerOptions::limit_test_batches>(
//                          options, {test, /*batch_size=*/32}));
//   TROUPE_ASSIGN_OR_RETURN(actors::JobSpec spec,
//                           EvaluationJob(options, task, first, at));
//
// Errors: kInvalidArgument that names the option (base/field_error.h).

#ifndef TROUPE_TRAINER_EVALUATION_JOB_H_
#define TROUPE_TRAINER_EVALUATION_JOB_H_

#include <string>

#include "absl/status/statusor.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/spec/job_spec.h"
#include "base/check.h"
#include "pipeline/mesh.h"
#include "troupe/trainer/option_error.h"
#include "troupe/trainer/portion.h"
#include "troupe/trainer/trainer_placement.h"
#include "troupe/trainer_options.h"

namespace troupe {

// Opens a checkpoint: a path, that of a folder, "last", "best", or if it is
// empty, the best of the ModelCheckpoint, or its newest one if it has no
// monitor.
//   kInvalidArgument: no ModelCheckpoint has a folder.
//   kNotFound: there is no checkpoint.
absl::StatusOr<actors::Checkpoint> CheckpointAt(const TrainerOptions& options,
                                                std::string ckpt_path);

// Returns the data with the samples that the option lets through; fast_dev_run
// is stronger than it. Data that EvaluationJob() refuses stay as they are.
//   kInvalidArgument: it leaves none; errors of BatchesOf().
template <auto kField>
absl::StatusOr<FitData> LimitedData(TrainerOptions options, FitData data) {
  if (data.dataset == nullptr || data.dataset->size() == 0 ||
      data.batch_size < 1) {
    return data;
  }
  if (options.fast_dev_run > 0) options.*kField = options.fast_dev_run;
  TROUPE_ASSIGN_OR_RETURN(const pipeline::Mesh mesh, TrainerMesh(options));
  TROUPE_ASSIGN_OR_RETURN(
      data.dataset,
      FirstBatches<kField>(options, data.dataset, data.batch_size * mesh.dp()));
  if (data.dataset->size() > 0) return data;
  return RefuseOption<kField>(
      options, " leaves nothing to evaluate; give at least one batch");
}

// Returns the job that evaluates all samples of `data`. It trains and saves
// nothing.
absl::StatusOr<actors::JobSpec> EvaluationJob(const TrainerOptions& options,
                                              const Task& task,
                                              const FitData& data,
                                              const actors::Checkpoint& at);

}  // namespace troupe

#endif  // TROUPE_TRAINER_EVALUATION_JOB_H_
