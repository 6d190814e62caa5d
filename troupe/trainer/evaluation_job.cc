#include "troupe/trainer/evaluation_job.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/checkpoint/load_model.h"
#include "base/check.h"
#include "base/field_error.h"
#include "base/files/file_system.h"
#include "troupe/trainer/option_error.h"
#include "troupe/trainer/trainer_job.h"
#include "troupe/trainer_callbacks.h"

namespace troupe {
namespace {

using O = TrainerOptions;

constexpr char kBest[] = "best", kLast[] = "last";

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
  TROUPE_ASSIGN_OR_RETURN(actors::JobSpec spec,
                          EvaluatingJob(options, task, data));
  spec.checkpoint.from = at.path();
  if (options.edit_job) options.edit_job(spec);
  return spec;
}

}  // namespace troupe
