#include "actors/setup/resume.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "actors/chunks/step/loss_scaler.h"
#include "actors/chunks/update_counts.h"
#include "actors/spec/optimizer_states.h"
#include "base/check.h"
#include "base/field_error.h"

namespace troupe::actors {
namespace {

// Returns the tensors that the ranks of the job save together, under the
// checkpoint's names.
absl::StatusOr<StateDictSpec> StateDictOf(const JobSpec& spec,
                                          const Checkpoint& checkpoint) {
  StateDictSpec wanted;
  std::map<nn::DType, std::map<std::string, nn::DType>> states;
  const std::unique_ptr<nn::Module> model = spec.model();
  for (const nn::Parameter* parameter : model->Parameters()) {
    const std::string& saved = SavedName(checkpoint, *parameter);
    wanted.model[saved] = {parameter->shape, parameter->dtype};
    const auto [of_dtype, is_new] = states.try_emplace(parameter->dtype);
    if (is_new) {
      TROUPE_ASSIGN_OR_RETURN(of_dtype->second,
                              OptimizerStates(spec, parameter->dtype));
    }
    for (const auto& [name, dtype] : of_dtype->second) {
      wanted.optimizer[absl::StrCat(saved, ".", name)] = {parameter->shape,
                                                          dtype};
    }
    // Earlier versions saved no counts, and some optimizers need none.
    wanted.optional[absl::StrCat(saved, ".", kUpdateCountState)] = {
        nn::Shape(), nn::DType::kF64};
  }
  if (spec.dynamic_loss_scale.has_value()) {
    wanted.optimizer[kLossScalerState] = {{nn::kNumLossScaleState},
                                          nn::DType::kF64};
  }
  wanted.optional[kSkippedStepsState] = {nn::Shape(), nn::DType::kF64};
  for (const nn::Buffer* buffer : model->Buffers()) {
    wanted.model[buffer->name] = {buffer->shape,
                                  SavedDType(checkpoint, *buffer)};
  }
  if (spec.train != nullptr) return wanted;
  // A job that only evaluates passes over the states of the optimizer.
  for (const std::string& name : checkpoint.OptimizerNames()) {
    const nn::SafetensorsEntry& entry = *checkpoint.FindOptimizer(name);
    wanted.optional[name] = {entry.shape, entry.dtype};
  }
  return wanted;
}

// Checks that the options allow all differences between checkpoint and job.
absl::Status CheckKeys(const std::string& path, const IncompatibleKeys& keys,
                       const CheckpointOptions& options) {
  using Options = CheckpointOptions;
  std::string what, allow;
  std::vector<std::string> fields;
  const auto add = [&](absl::string_view is, absl::Span<const std::string> list,
                       const std::string& field, absl::string_view effect) {
    absl::StrAppend(&what, "; ", is, ": ", ListKeys(list));
    absl::StrAppend(&allow, ", or set ", field, " = true to ", effect);
    fields.push_back(field);
  };
  if (!options.allow_unexpected && !keys.unexpected.empty()) {
    add("unexpected in the checkpoint", keys.unexpected,
        base::FieldName<&Options::allow_unexpected>(),
        "go on without what is unexpected");
  }
  if (!options.allow_missing && !keys.missing.empty()) {
    add("missing from the checkpoint", keys.missing,
        base::FieldName<&Options::allow_missing>(),
        "begin what is missing with initial values");
  }
  if (!keys.mismatched.empty()) {
    absl::StrAppend(&what, "; mismatched: ", ListKeys(keys.mismatched));
  }
  if (what.empty()) return absl::OkStatus();
  return base::WithFields(
      absl::InvalidArgumentError(
          absl::StrCat(path, " is of another model or optimizer", what,
                       "; go on with those that it was saved from", allow)),
      fields);
}

absl::StatusOr<Resume> Open(const JobSpec& spec, base::FileSystem& files,
                            const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(Checkpoint checkpoint, Checkpoint::Open(files, path));
  if (spec.train != nullptr && checkpoint.state().seed != spec.seed) {
    return base::FieldError<&JobSpec::seed>(
        absl::StrCat(path, " was written with seed ", checkpoint.state().seed,
                     ", this job has ", spec.seed, "; set ",
                     base::FieldName<&JobSpec::seed>(), " to go on with it"));
  }
  Resume resume;
  resume.path = path;
  resume.evaluations = checkpoint.state().evaluations;
  TROUPE_ASSIGN_OR_RETURN(const double skipped, SkippedSteps(checkpoint));
  resume.skipped_steps = static_cast<std::int64_t>(skipped);
  resume.checkpoint = std::make_shared<const Checkpoint>(std::move(checkpoint));
  return resume;
}

}  // namespace

absl::StatusOr<Resume> OpenResume(const JobSpec& spec,
                                  base::FileSystem& files) {
  const CheckpointOptions& options = spec.checkpoint;
  if (!options.from.empty()) return Open(spec, files, options.from);
  if (!options.resume || options.dir.empty()) return Resume();
  const absl::StatusOr<std::string> latest =
      FindLatestCheckpoint(files, options.dir);
  if (absl::IsNotFound(latest.status())) return Resume();
  TROUPE_RETURN_IF_ERROR(latest.status());
  return Open(spec, files, *latest);
}

absl::StatusOr<Resume> OpenResumeAt(const JobSpec& spec,
                                    base::FileSystem& files,
                                    const std::string& path) {
  if (path.empty()) return Resume();
  absl::StatusOr<Resume> resume = Open(spec, files, path);
  if (resume.ok()) return resume;
  return base::WithMessage(
      resume.status(), absl::StrCat("process 0 goes on from ", path,
                                    ", which must be there for every process: ",
                                    resume.status().message()));
}

absl::Status MatchKeys(const JobSpec& spec, Resume& resume) {
  if (resume.checkpoint == nullptr) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const StateDictSpec wanted,
                          StateDictOf(spec, *resume.checkpoint));
  resume.keys = FindIncompatibleKeys(*resume.checkpoint, wanted);
  return CheckKeys(resume.path, resume.keys, spec.checkpoint);
}

}  // namespace troupe::actors
