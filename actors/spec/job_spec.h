// What a job is: model, data, optimizer, mesh, and when to evaluate, save and
// stop. Plain data; nothing starts until Job::Start().
//
//   JobSpec spec;
//   spec.model = [] { return nn::MakeMlp({784, 512, 10}, {}); };
//   spec.loss = nn::ops::CrossEntropyLoss();
//   spec.optimizer = [] { return std::make_unique<nn::Sgd>(sgd_options); };
//   spec.train = splits.train;
//   spec.plan.mesh = pipeline::Mesh(/*dp=*/2);
//   spec.plan.global_batch_size = 64;
//   spec.steps = 1000;

#ifndef ACTORS_SPEC_JOB_SPEC_H_
#define ACTORS_SPEC_JOB_SPEC_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "actors/spec/cluster_options.h"
#include "actors/tracing/trace.h"
#include "base/file_system.h"
#include "data/dataset.h"
#include "nn/kernels/kernel_choices.h"
#include "nn/kernels/kernels.h"
#include "nn/kernels/loss_scale.h"
#include "nn/modules/module.h"
#include "nn/ops/loss.h"
#include "nn/optim/optimizer.h"
#include "nn/serialize/weight_file.h"
#include "nn/tensor/device.h"
#include "nn/tensor/dtype.h"
#include "pipeline/cut_search.h"
#include "pipeline/plan.h"

namespace troupe::actors {

using OptimizerFactory = std::function<std::unique_ptr<nn::Optimizer>()>;

// Values of CheckpointOptions::best_metric: the smallest loss of an evaluation
// is the best, or the highest accuracy.
inline constexpr char kEvalLoss[] = "eval_loss";
inline constexpr char kEvalAccuracy[] = "eval_accuracy";

struct CheckpointOptions {
  std::string dir;  // empty: no checkpoints
  // Saves after so many steps (0: not by steps), and when the last checkpoint,
  // or the start, is so long ago (0: not by time); at the end in any case. Half
  // an hour is what a crash costs at most: near sqrt(2 * cost * time between
  // failures) (Young 1974) for one that costs seconds, and a failure in days.
  std::int64_t every = 0;
  absl::Duration every_time = absl::Minutes(30);
  int keep = 3;  // newest ones kept; 0: all
  // Keeps the checkpoint of the best evaluation, too, and points the link
  // "best" in `dir` to it. An evaluation that is the best so far makes one.
  bool keep_best = false;
  // By what evaluations are compared, here and for an early stop: kEvalLoss or
  // kEvalAccuracy.
  std::string best_metric = kEvalLoss;
  bool resume = false;  // go on from the newest one in `dir`, if any
  // Goes on from this one, wherever it is, instead of the newest in `dir`.
  std::string from;
  // Whether a resumed job may lack tensors of the checkpoint, or have others
  // that begin with initial values; false: either is an error, as in PyTorch's
  // load_state_dict(strict=True). Names, shapes and dtypes count.
  bool allow_unexpected = false;
  bool allow_missing = false;
  // Where files are; null: the real disk. Outlives the job.
  base::FileSystem* files = nullptr;
  // The run's claim to `dir` (actors/checkpoint/claim.h); null: the job makes
  // it, and gives it up when it is destroyed. Without it, one that another run
  // has is an error.
  std::shared_ptr<base::FileLock> claim;
};

// Weights that a job begins with, where it goes on from no checkpoint.
struct InitOptions {
  // A safetensors file (nn/serialize/weight_file.h), which every process can
  // read; empty: parameters are drawn by their initialisers.
  std::string from;
  // Whether names and shapes must be the model's. False: what the file lacks,
  // or has in another shape, keeps its initial value; what only the file has
  // is left out.
  bool strict = true;
  // The file, open. The job sets it.
  std::shared_ptr<const nn::WeightFile> weights;
};

struct JobSpec;

// A job whose dtype is chosen when it starts (actors/planning/dtype_choice.h):
// of the candidates, the one that `measure` finds the fastest.
struct OpenDType {
  // The first one stays unless another is faster by a twentieth.
  std::vector<nn::DType> candidates = {nn::DType::kF32, nn::DType::kBF16};
  // Makes `spec` compute in `dtype`: JobSpec::dtype, the model's parameters, an
  // optimizer that suits them.
  std::function<void(nn::DType dtype, JobSpec& spec)> set;
  // Seconds that a step of `spec` takes, as of MeasureStepSeconds(); null: the
  // first candidate is taken.
  std::function<absl::StatusOr<double>(const JobSpec& spec)> measure;
};

// A job whose model is cut by what its parts are measured to take
// (actors/planning/pipeline_choice.h).
struct OpenPipeline {
  // Seconds and bytes of the model's parts, as of MeasureCosts()
  // (actors/planning/measure_costs.h).
  std::function<absl::StatusOr<pipeline::ModelCosts>(const JobSpec& spec)>
      measure;
  // Sets cuts by the costs, and where `chooses_schedule`, placement and
  // schedule. Until it is called, `plan` has others, with which it is complete.
  std::function<absl::Status(const pipeline::ModelCosts& costs,
                             pipeline::PlanOptions& plan)>
      set;
  bool chooses_schedule = false;
};

struct JobSpec {
  // Called for each rank in the rank's own thread, several at once; and before,
  // to make the plan, in the caller of Job::Start().
  nn::ModelFactory model;
  InitOptions init;
  nn::ops::LossFn loss;
  // Whether gradients and reported losses are those of the mean of `loss` over
  // all counted targets of a global batch, or of its sum over them.
  nn::ops::LossReduction loss_reduction = nn::ops::LossReduction::kMean;
  OptimizerFactory optimizer;
  // What loaded floats become, inputs and targets.
  nn::DType dtype = nn::DType::kF32;
  // Set: `dtype` is open. Process 0 chooses, before the plan is made; the plan
  // has the choice, and a job that goes on from a checkpoint keeps that of its
  // plan.
  std::optional<OpenDType> open_dtype;
  // All gradients are multiplied by it until the update divides it out, so that
  // small ones are not lost in 16 bits; a power of two changes no other bit.
  double loss_scale = 1;
  // Set: loss_scale is that of the first step, and the ones behind it follow
  // from which gradients are finite (nn/kernels/loss_scale.h). For an optimizer
  // that skips steps (nn::OptimizerOptions::skip_nonfinite).
  std::optional<nn::LossScaleRule> dynamic_loss_scale;
  // "cuda" without a number: a GPU for each rank of a process.
  nn::Device device;
  // Opens a rank's kernels; null: those of `device`. Simulations and tests
  // choose another set here.
  std::function<absl::StatusOr<std::unique_ptr<nn::Kernels>>()> kernels;
  // The algorithms that the ranks of this process share, and where they are
  // kept; null: the job makes one, in memory, and they are kept in the plans of
  // its checkpoints alone. Those of the checkpoint that a job goes on from go
  // before all others.
  std::shared_ptr<nn::KernelChoices> kernel_choices;

  // Whether a rank's training step on a GPU is recorded once and launched as a
  // whole from then on (docs/cuda.md): "on", "off", or "auto", which keeps what
  // measures faster. The bits are the same.
  std::string cuda_graphs = "auto";

  data::DatasetPtr train;
  data::DatasetPtr test;  // null: no evaluation
  // What the training samples are, as data::DescribeData() has it. Kept in
  // checkpoints: resuming with other data is refused. Empty: not compared.
  std::map<std::string, std::string> data;
  std::uint64_t seed = 0;
  bool shuffle = true;
  // Steps of micro-batches that a loader may be ahead of its rank.
  int prefetch_steps = 4;
  // Threads of a rank that read and decode samples; the batches are the same.
  int load_workers = 1;

  // Mesh, batch sizes, buckets.
  pipeline::PlanOptions plan;
  // Set: cuts are open. Process 0 measures, when the dtype is chosen and before
  // the plan is made; the plan has the cuts, and a job that goes on from a
  // checkpoint keeps those of its plan.
  std::optional<OpenPipeline> open_pipeline;

  // Which of several processes this is; none: all ranks live in this one.
  std::optional<ClusterOptions> cluster;

  // How long, resumed ones included: steps, or passes over `train`.
  std::int64_t steps = 0;
  std::int64_t epochs = 0;
  // `test` is evaluated at the end; also after every eval_every steps (0: not),
  // and where eval_each_epoch is set, after every pass over `train`.
  std::int64_t eval_every = 0;
  bool eval_each_epoch = false;
  bool stop_on_nan = true;
  // Ends the job, well, after so many evaluations in a row that do not improve
  // on the best one before them by more than early_stop_min_delta; 0: never.
  // Only evaluations of eval_every and eval_each_epoch count.
  std::int64_t early_stop_patience = 0;
  double early_stop_min_delta = 0;

  CheckpointOptions checkpoint;

  // A job that makes no progress for so long has failed.
  absl::Duration timeout = absl::Minutes(5);

  // Told in a line what a rank of this process chose while it ran, such as
  // whether its steps are recorded. Called in the ranks' threads, several at
  // once; null: nobody is told.
  std::function<void(const std::string& line)> note;

  // Where actions and collectives are noted; null: nowhere. Outlives the job.
  TraceSink* trace = nullptr;
};

// The checks that need neither model nor data: numbers, and how many ranks.
// Job::Start() makes them first. Errors blame the field (base/field_error.h).
absl::Status CheckNumbers(const JobSpec& spec);

// An optimizer of the job.
//   kInvalidArgument: the factory made none.
absl::StatusOr<std::unique_ptr<nn::Optimizer>> MakeOptimizer(
    const JobSpec& spec);

// The plan of the job's model, for samples as `train` has them.
//   Errors of pipeline::MakePlan().
absl::StatusOr<pipeline::Plan> MakeJobPlan(
    const JobSpec& spec, const pipeline::PlanOptions& options);

// Opens the kernel set of the rank that is number `local_rank` of its host.
absl::StatusOr<std::unique_ptr<nn::Kernels>> OpenRankKernels(
    const JobSpec& spec, int local_rank);

}  // namespace troupe::actors

#endif  // ACTORS_SPEC_JOB_SPEC_H_
