// Implements SetUpInference(): the plan and the contexts of a trained model.

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/checkpoint/state_dict.h"
#include "actors/inference/inference_actor.h"
#include "actors/setup/rank_setup.h"
#include "actors/setup/settings.h"
#include "base/check.h"
#include "base/cpu_cores.h"
#include "base/field_error.h"
#include "nn/optim/sgd.h"

namespace troupe::actors {
namespace {

// Returns a factory of the model without parameters to train, so that no rank
// has memory for gradients or optimizer states. Initial values do not matter:
// the checkpoint overwrites them.
nn::ModelFactory Frozen(const nn::ModelFactory& model) {
  return [model] {
    std::unique_ptr<nn::Module> frozen = model();
    if (frozen == nullptr) return frozen;
    for (nn::Parameter* parameter : frozen->Parameters()) {
      parameter->requires_grad = false;
      parameter->init = nn::Initializer::Constant(0);
    }
    return frozen;
  };
}

// Returns a spec with the fields that matter without training.
JobSpec InferenceSpec(const JobSpec& spec) {
  JobSpec own;
  own.model = Frozen(spec.model);
  own.optimizer = [] { return std::make_unique<nn::Sgd>(nn::SgdOptions()); };
  own.dtype = spec.dtype;
  own.device = spec.device;
  own.kernels = spec.kernels;
  own.kernel_choices = spec.kernel_choices != nullptr
                           ? spec.kernel_choices
                           : std::make_shared<nn::KernelChoices>();
  own.train = SamplesOf(spec);
  own.timeout = spec.timeout;
  own.plan.mesh = pipeline::Mesh(/*dp=*/1, spec.plan.mesh.pp());
  own.plan.cuts = spec.plan.cuts;
  own.plan.virtual_stages = spec.plan.virtual_stages;
  own.plan.placement = spec.plan.placement;
  own.plan.threads_per_rank = spec.plan.threads_per_rank;
  own.plan.global_batch_size = 1;
  own.plan.inline_bytes = 0;
  own.plan.data_dtype = spec.dtype;
  return own;
}

absl::Status CheckKeys(const nn::ModelFactory& factory,
                       const Checkpoint& checkpoint) {
  const std::unique_ptr<nn::Module> model = factory();
  StateDictSpec wanted;
  for (const nn::Parameter* parameter : model->Parameters()) {
    wanted.model[SavedName(checkpoint, *parameter)] = {parameter->shape,
                                                       parameter->dtype};
  }
  for (const nn::Buffer* buffer : model->Buffers()) {
    wanted.model[buffer->name] = {buffer->shape,
                                  SavedDType(checkpoint, *buffer)};
  }
  const IncompatibleKeys keys = FindIncompatibleKeys(checkpoint, wanted);
  if (keys.missing.empty() && keys.mismatched.empty()) return absl::OkStatus();
  return base::FieldError<&JobSpec::model>(absl::StrCat(
      checkpoint.path(), " is of another model",
      keys.missing.empty() ? "" : "; missing from it: ", ListKeys(keys.missing),
      keys.mismatched.empty() ? "" : "; mismatched: ",
      ListKeys(keys.mismatched)));
}

}  // namespace

absl::StatusOr<ProcessContextPtr> SetUpInference(const JobSpec& spec,
                                                 const Checkpoint& checkpoint,
                                                 const TestHooks* hooks,
                                                 const nn::ModelFactory& runs) {
  if (!spec.model || SamplesOf(spec) == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "JobSpec: ", spec.model ? "train" : "model", " is not set; set it"));
  }
  auto process = std::make_shared<ProcessContext>();
  auto own = std::make_shared<JobSpec>(InferenceSpec(spec));
  if (runs) own->model = Frozen(runs);
  process->spec = own;
  process->generation = 1;
  process->cores = base::AvailableCores();
  process->hooks = hooks;
  TROUPE_ASSIGN_OR_RETURN(pipeline::Plan plan, MakeJobPlan(*own, own->plan));
  TROUPE_RETURN_IF_ERROR(CheckKeys(own->model, checkpoint));
  TROUPE_RETURN_IF_ERROR(CheckSameModel(spec, checkpoint));
  process->plan = std::make_shared<const pipeline::Plan>(std::move(plan));
  TROUPE_ASSIGN_OR_RETURN(process->ranks,
                          MakeRanks(*process, 0, process->plan->mesh.size(),
                                    LocalGroups(*process)));
  return ProcessContextPtr(std::move(process));
}

}  // namespace troupe::actors
