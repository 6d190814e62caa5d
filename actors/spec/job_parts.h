// The parts of a JobSpec by concern: loss, numbers, devices, loading,
// evaluation, watching. JobSpec derives from them, so that their fields are its
// own:
//
//   spec.eval_every = 100;
//   const EvaluationOptions& evaluation = spec;
//   evaluation.eval_every;  // 100; errors call it "JobSpec.eval_every"

#ifndef ACTORS_SPEC_JOB_PARTS_H_
#define ACTORS_SPEC_JOB_PARTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "actors/spec/job_fields.h"
#include "actors/spec/training_step.h"
#include "actors/tracing/trace.h"
#include "data/sample_weights.h"
#include "nn/kernels/kernel_choices.h"
#include "nn/kernels/kernels.h"
#include "nn/kernels/loss_scale.h"
#include "nn/ops/loss.h"
#include "nn/tensor/device.h"
#include "nn/tensor/dtype.h"

namespace troupe::actors {

struct JobSpec;

// A dtype that is chosen when the job starts (actors/planning/dtype_choice.h):
// the candidate that `measure` finds the fastest.
struct OpenDType {
  // Dtypes to choose from. The first one stays unless another is faster by a
  // twentieth.
  std::vector<nn::DType> candidates = {nn::DType::kF32, nn::DType::kBF16};
  // Makes `spec` compute in `dtype`: sets JobSpec::dtype, the model's
  // parameters, and an optimizer that suits them.
  std::function<void(nn::DType dtype, JobSpec& spec)> set;
  // Returns the seconds that a step of `spec` takes, as MeasureStepSeconds()
  // does. Null: the first candidate is taken.
  std::function<absl::StatusOr<double>(const JobSpec& spec)> measure;
};

// The loss that a job minimises, and the targets that its reports count.
struct ObjectiveOptions {
  static constexpr char kFieldsOf[] = "JobSpec";  // base/field_error.h

  // Loss of what the model gives for the inputs of a batch.
  JobLoss loss;
  // Set: training calls it in place of model and `loss`, and so do evaluations
  // if there is no `loss`. For models that are whole, not in stages.
  JobTrainingStep training_step;
  // Returns the number of targets of a batch that the loss counts, for the
  // reports of evaluations; called in the rank's thread. Null: the count of the
  // loss, which with class weights is a sum of weights (nn/ops/loss.h).
  std::function<std::int64_t(const nn::Tensor& targets)> count_targets;
};

// Dtypes and scales of a job's numbers.
struct NumberOptions {
  static constexpr char kFieldsOf[] = "JobSpec";  // base/field_error.h

  // Whether gradients and reported losses are those of the mean of `loss` over
  // all counted targets of a global batch, or of its sum over them.
  nn::ops::LossReduction loss_reduction = nn::ops::LossReduction::kMean;
  // Type to which loaded floats are converted, inputs and targets.
  nn::DType dtype = nn::DType::kF32;
  // Set: `dtype` is open. Process 0 chooses it before it makes the plan, which
  // records the choice; a job that is resumed from a checkpoint keeps the dtype
  // of that checkpoint's plan.
  std::optional<OpenDType> open_dtype;
  // Factor of all gradients until the update divides it out, so that small ones
  // are not lost in 16 bits. A power of two changes no other bit.
  double loss_scale = 1;
  // Set: loss_scale is the scale of the first step, and later ones follow from
  // which gradients are finite (nn/kernels/loss_scale.h). Needs an optimizer
  // that skips steps (nn::OptimizerOptions::skip_nonfinite).
  std::optional<nn::LossScaleRule> dynamic_loss_scale;
  // Whether a training loss that is not finite ends the job with an error.
  bool stop_on_nan = true;
};

// Devices and kernels with which the ranks of a process compute.
struct DeviceOptions {
  static constexpr char kFieldsOf[] = "JobSpec";

  // Device of the ranks; "cuda" without a number: a GPU for each rank of a
  // process.
  nn::Device device;
  // Opens a rank's kernels. Null: those of `device`. Simulations and tests
  // choose another set here.
  std::function<absl::StatusOr<std::unique_ptr<nn::Kernels>>()> kernels;
  // Algorithms that the ranks of this process share, and where they are kept.
  // Null: the job makes the object, in memory, and algorithms are kept only in
  // the plans of its checkpoints. Those of the checkpoint that a job is resumed
  // from take precedence over all others.
  std::shared_ptr<nn::KernelChoices> kernel_choices;
  // Whether a rank's training step on a GPU is recorded once as a CUDA graph
  // and launched as a whole from then on (docs/cuda.md): "on", "off", or
  // "auto", which keeps what measures faster. The bits are the same.
  std::string cuda_graphs = "auto";
};

// How the ranks read their samples.
struct LoadingOptions {
  static constexpr char kFieldsOf[] = "JobSpec";

  // Description of the training samples, by data::DescribeData(). Checkpoints
  // keep it, and resuming with other data is refused. Empty: not compared.
  std::map<std::string, std::string> data;
  // Whether each pass over the training samples has an order of its own, drawn
  // from JobSpec::seed.
  bool shuffle = true;
  // Whether the samples that do not fill a global batch at the end of a pass
  // are left out; otherwise they are a shorter one. Its loss is their mean.
  bool drop_last = true;
  // Set: samples are drawn by these weights, with replacement, in place of
  // `shuffle`.
  data::SampleWeightsPtr sample_weights;
  // Limit on the steps of micro-batches that a loader is ahead of its rank.
  int prefetch_steps = 4;
  // Number of threads of a rank that read and decode samples. The batches do
  // not depend on it.
  int load_workers = 1;
};

// Description of the model, the loss and the optimizer, which checkpoints keep
// and a resumed job compares (actors/setup/settings.h). The types of modules
// need no description.
struct DescribedSettings {
  static constexpr char kFieldsOf[] = "JobSpec";

  // Values by key: {"optimizer.lr", "0.1"}. Differences are reported.
  std::map<std::string, std::string> settings;
  // Keys whose values must be the checkpoint's, since another one would give
  // its tensors another meaning: "loss.kind". The model's begin with "model.".
  std::set<std::string> fixed_settings;
};

// When the test samples are evaluated, and when evaluations end a job early.
struct EvaluationOptions {
  static constexpr char kFieldsOf[] = "JobSpec";

  // Steps between evaluations; 0: not by steps. The end of the job has one in
  // any case.
  std::int64_t eval_every = 0;
  // Whether each pass over the training samples ends with an evaluation.
  bool eval_each_epoch = false;
  // Number of evaluations in a row that end the job, without an error, if none
  // improves on the best one before them by more than early_stop_min_delta; 0:
  // never. Only evaluations of eval_every and eval_each_epoch count.
  std::int64_t early_stop_patience = 0;
  double early_stop_min_delta = 0;
};

// Timeout, callback and trace by which a run is watched from outside.
struct WatchOptions {
  static constexpr char kFieldsOf[] = "JobSpec";

  // Time without progress after which the job has failed.
  absl::Duration timeout = absl::Minutes(5);
  // Called with a line for each choice that the job makes before it starts, or
  // a rank of this process while it runs, such as whether its steps are
  // recorded. Runs in the caller of Job::Start() and in the ranks' threads,
  // several at once. Null: not called.
  std::function<void(const std::string& line)> note;
  // Receives actions and collectives. Null: nothing is traced. Outlives the
  // job.
  TraceSink* trace = nullptr;
};

}  // namespace troupe::actors

#endif  // ACTORS_SPEC_JOB_PARTS_H_
