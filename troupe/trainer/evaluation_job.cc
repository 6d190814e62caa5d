#include "troupe/trainer/evaluation_job.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "actors/checkpoint/load_model.h"
#include "base/check.h"
#include "base/field_error.h"
#include "base/files/file_system.h"
#include "data/dataset.h"
#include "troupe/trainer/option_error.h"
#include "troupe/trainer/trainer_job.h"
#include "troupe/trainer/trainer_placement.h"
#include "troupe/trainer_callbacks.h"

namespace troupe {
namespace {

using O = TrainerOptions;

constexpr char kBest[] = "best", kLast[] = "last";

// Stands in for the training data of a checkpoint's run, of which an evaluation
// reads none: a job goes on with data of the same size alone.
class InPlaceOfTraining : public data::Dataset {
 public:
  InPlaceOfTraining(std::int64_t size, data::DatasetPtr dataset)
      : Dataset(size, dataset->spec()), dataset_(std::move(dataset)) {}

 private:
  absl::Status Gather(absl::Span<const std::int64_t> indices,
                      std::int64_t epoch, const nn::Tensor& inputs,
                      const nn::Tensor& targets) const override {
    std::vector<std::int64_t> mapped;
    for (const std::int64_t i : indices) mapped.push_back(i % dataset_->size());
    return dataset_->Fill(mapped, epoch, inputs, targets);
  }

  const data::DatasetPtr dataset_;
};

const ModelCheckpoint* SavingOf(const TrainerOptions& options) {
  for (const auto& callback : options.callbacks) {
    const auto* saving = dynamic_cast<const ModelCheckpoint*>(callback.get());
    if (saving != nullptr) return saving;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<actors::Checkpoint> CheckpointAt(const TrainerOptions& options,
                                                std::string ckpt_path) {
  if (ckpt_path.empty() || ckpt_path == kBest || ckpt_path == kLast) {
    const ModelCheckpoint* const saving = SavingOf(options);
    if (saving == nullptr) {
      return base::FieldError<&O::callbacks>(absl::StrCat(
          base::FieldName<&O::callbacks>(),
          " have no ModelCheckpoint whose folder has the checkpoint to "
          "evaluate; add one, or give the path of a checkpoint"));
    }
    const bool best =
        ckpt_path == kBest || (ckpt_path.empty() && !saving->monitor().empty());
    ckpt_path = absl::StrCat(saving->Folder(options), best ? "/best" : "");
  }
  base::PosixFileSystem files;
  return actors::OpenCheckpoint(files, ckpt_path);
}

absl::StatusOr<actors::JobSpec> EvaluationJob(const TrainerOptions& options,
                                              const Task& task,
                                              const FitData& data,
                                              const actors::Checkpoint& at) {
  TROUPE_RETURN_IF_ERROR((AtLeast<&FitData::batch_size>(1, data)));
  if (data.dataset == nullptr || data.dataset->size() == 0) {
    return base::FieldError<&FitData::dataset>(
        absl::StrCat(base::FieldName<&FitData::dataset>(),
                     " has no samples to evaluate; give {dataset, "
                     "/*batch_size=*/32}"));
  }
  TrainerOptions once = options;
  if (options.fast_dev_run > 0) once.limit_val_batches = options.fast_dev_run;
  once.fast_dev_run = 0;
  once.max_epochs = -1;
  once.max_steps = at.state().step;
  once.limit_train_batches = 1.0;
  once.val_check_interval = 1.0;
  once.check_val_every_n_epoch = 1;
  once.seed = at.state().seed;
  TROUPE_ASSIGN_OR_RETURN(const pipeline::Mesh mesh, TrainerMesh(options));
  TROUPE_RETURN_IF_ERROR((AtLeast<&O::accumulate_grad_batches>(1, options)));
  const std::int64_t samples = at.state().sampler.dataset_size;
  FitData train = data;
  train.dataset = std::make_shared<InPlaceOfTraining>(samples, data.dataset);
  train.batch_size = std::clamp<std::int64_t>(
      data.batch_size, 1,
      std::max<std::int64_t>(
          1, samples / (mesh.dp() * options.accumulate_grad_batches)));
  TROUPE_ASSIGN_OR_RETURN(actors::JobSpec spec,
                          TrainerJob(once, task, train, data));
  if (spec.test == nullptr) {
    return RefuseOption<&O::limit_val_batches>(
        options, " leaves nothing to evaluate; give at least one batch");
  }
  spec.checkpoint.from = at.path();
  if (options.edit_job) options.edit_job(spec);
  return spec;
}

}  // namespace troupe
