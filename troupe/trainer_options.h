// Tasks and options of a Trainer, under the names of PyTorch Lightning 2.
//
//   Task task;
//   task.model = [] { return nn::MakeMlp({784, 512, 10}, {}); };
//   task.loss = nn::ops::CrossEntropyLoss();
//   task.optimizer = nn::AdamOptions{/*lr=*/1e-3};
//   TrainerOptions options;
//   options.devices = 2;
//   options.max_epochs = 10;
//   options.precision = "bf16-mixed";
//   options.val_check_interval = 0.25;        // four times an epoch
//   options.limit_val_batches = 20;
//   Trainer trainer(options);
//   absl::Status status =
//       trainer.Fit(task, {train, /*batch_size=*/32, /*shuffle=*/true}, {val});
//
// docs/coming_from_lightning.md has Lightning's names beside these. Options are
// checked by Trainer::Fit(); errors name the option and what to write.

#ifndef TROUPE_TRAINER_OPTIONS_H_
#define TROUPE_TRAINER_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "actors/spec/cluster_options.h"
#include "actors/spec/job_fields.h"
#include "actors/spec/job_spec.h"
#include "actors/spec/training_step.h"
#include "nn/optim/adam.h"
#include "nn/optim/layerwise.h"
#include "nn/optim/sgd.h"
#include "troupe/trainer/predict_step.h"

namespace troupe {

class Callback;

// The optimizer of a task: options of one of the library, or a function that
// makes one, to which a Trainer adds neither clipping nor mixed precision.
using TaskOptimizer =
    std::variant<actors::JobOptimizer, nn::SgdOptions, nn::AdamOptions,
                 nn::LambOptions, nn::LarsOptions>;

// A model and how it is trained (LightningModule).
struct Task {
  // Makes the model of a rank. The Trainer sets the dtype of its parameters.
  actors::JobModel model;
  // A schedule in its options that has an end, and no steps, ends with the run.
  TaskOptimizer optimizer;
  // Either is needed: the loss of the model's output, or a step of one's own,
  // such as &MyModel::TrainingStep, which needs a whole model on each rank.
  // Evaluations take the loss where both are given.
  actors::JobLoss loss;
  actors::JobTrainingStep training_step;
  // Computes the outputs of Trainer::Predict() from the inputs of a batch;
  // unset: the model's forward does. It needs a whole model on each rank.
  TaskPredictStep predict_step;
};

// Samples, and the batches that they come in (a DataLoader given to fit()).
struct FitData {
  actors::JobData dataset;
  // Number of samples of a rank's batch. For validation it only matters to
  // limit_val_batches, and 0 is that of the training data.
  std::int64_t batch_size = 0;
  bool shuffle = false;
  int workers = 1;  // threads of a rank that read samples
};

// A number of batches of a rank, or a fraction of those of an epoch: 10, 0.25.
using Portion = std::variant<std::int64_t, double>;

// Where ranks are, and what each of them holds.
struct PlacementOptions {
  static constexpr char kFieldsOf[] = "TrainerOptions";  // base/field_error.h

  int devices = 1;  // number of ranks of a node
  // Number of nodes. More than one are started by a launcher, which also says
  // in how many processes the ranks of a node are (docs/launching.md).
  int num_nodes = 1;
  std::string accelerator = "cpu";  // or "gpu": one for each rank of a process
  // "ddp" or "auto": each rank has the model. "deepspeed_stage_1": the same,
  // but each rank has a part of the optimizer's states, and its update;
  // "deepspeed_stage_2": also of the gradients, once they are reduced;
  // "deepspeed_stage_3" or "fsdp": also of the parameters, and gathers the
  // others before it uses them (docs/parallelism.md, zero.stage).
  // "pipeline:1f1b", or another schedule of pipeline/schedules/schedules.h: the
  // ranks of a pipeline have a part each, cut by FLOPs, and
  // accumulate_grad_batches is the number of its micro-batches.
  std::string strategy = "auto";
  // Number of ranks of a pipeline; 0: those of a node. Further ranks are
  // replicas of it.
  int pipeline_stages = 0;
  // Place of this process among several. None: what the launcher set.
  std::optional<actors::ClusterOptions> cluster;
};

// Numbers and length of the training.
struct TrainingOptions {
  static constexpr char kFieldsOf[] = "TrainerOptions";

  // "32-true", "64-true", "bf16-mixed" or "16-mixed": f32 values are kept
  // beside 16-bit ones, and f16 has a dynamic loss scale. f64 is computed by
  // the reference kernels, which are slow.
  std::string precision = "32-true";
  // Length of the run, with the part before a checkpoint that it goes on from:
  // epochs, steps of the optimizer, or whichever ends first. -1: not set; if
  // neither is, 1000 epochs.
  std::int64_t max_epochs = -1;
  std::int64_t max_steps = -1;
  // The first batches of the data; an epoch is then that long.
  Portion limit_train_batches = 1.0;
  int accumulate_grad_batches = 1;  // batches of a rank in a step
  // Limit on the norm of all gradients, or with the algorithm "value" on each
  // of their elements; 0: that of the optimizer's options.
  double gradient_clip_val = 0;
  std::string gradient_clip_algorithm = "norm";
  // Number of steps and validation batches of a run that only shows that all
  // works: nothing is saved, and nothing ends it early. 0: an ordinary run.
  int fast_dev_run = 0;
  std::uint64_t seed = 0;  // seed_everything()
};

// When the validation data are evaluated, and how much of data. The end of a
// run has an evaluation in any case.
struct ValidationOptions {
  static constexpr char kFieldsOf[] = "TrainerOptions";

  // Training batches between evaluations, counted through all epochs, or the
  // fraction of an epoch.
  Portion val_check_interval = 1.0;
  // Epochs between evaluations, if val_check_interval is 1.0.
  std::int64_t check_val_every_n_epoch = 1;
  Portion limit_val_batches = 1.0;   // 0: no evaluation
  Portion limit_test_batches = 1.0;  // batches of Trainer::Test()
  // Batches of each replica that Trainer::Predict() computes.
  Portion limit_predict_batches = 1.0;
};

// Writes the line and its end to standard output.
void PrintLine(const std::string& line);

struct TrainerOptions : PlacementOptions, TrainingOptions, ValidationOptions {
  static constexpr char kFieldsOf[] = "TrainerOptions";

  std::int64_t log_every_n_steps = 50;  // 0: no lines of steps
  // Called with a line about steps and evaluations, in the thread of the
  // callbacks. Null: nothing is logged.
  std::function<void(const std::string& line)> logger = PrintLine;
  // Folder in which a ModelCheckpoint without a path saves.
  std::string default_root_dir = ".";
  // Checkpoint to go on from: its path, "last" for the newest one of the
  // ModelCheckpoint (none: the run begins anew), or "best" for its best one.
  std::string ckpt_path;
  std::vector<std::shared_ptr<Callback>> callbacks;
  // Changes the job at last, in what has no option here (actors/spec).
  std::function<void(actors::JobSpec& spec)> edit_job;
};

}  // namespace troupe

#endif  // TROUPE_TRAINER_OPTIONS_H_
