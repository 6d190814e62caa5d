#include "troupe/rank.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/status_error.h"
#include "nn/kernels/device_queues.h"
#include "troupe/internal/layer_axes.h"
#include "troupe/internal/model_core.h"
#include "troupe/profile/op_recorder.h"

namespace troupe {

Rank::Rank(actors::ProgramRank& strand, std::shared_ptr<nn::Kernels> kernels,
           std::uint64_t seed, const pipeline::Mesh& mesh, DeviceLines* devices)
    : strand_(strand),
      kernels_(std::move(kernels)),
      seed_(seed),
      mesh_(mesh),
      devices_(devices),
      context_(*kernels_, &tape_),
      recorder_(std::make_unique<OpRecorder>(context_, *kernels_, number())),
      axes_(mesh.axis_count()) {
  context_.set_owner(this);
  nn::StepPosition position;
  position.seed = seed;
  position.rank = number();
  context_.set_random(position);
  std::vector<int> all(size());
  std::iota(all.begin(), all.end(), number() < size() ? 0 : number());
  world_ = &AddGroup(all);
}

Rank::~Rank() = default;

void Rank::RemoveModel(ModelCore* model) {
  models_.erase(std::remove(models_.begin(), models_.end(), model),
                models_.end());
}

bool Rank::joins() const {
  return std::any_of(models_.begin(), models_.end(),
                     [](const ModelCore* model) {
                       return model->membership().observer() != nullptr;
                     });
}

absl::StatusOr<bool> Rank::Backward(nn::Context& ctx,
                                    const nn::BackwardRoot& root) {
  const std::vector<nn::Parameter*> used = ctx.tape()->parameters();
  std::vector<ModelCore*> owners;
  for (ModelCore* model : models_) {
    const bool owns = std::any_of(
        used.begin(), used.end(),
        [model](const auto* parameter) { return model->Owns(parameter); });
    if (owns) owners.push_back(model);
  }
  if (owners.empty()) return false;
  TROUPE_RETURN_IF_ERROR(ModelCore::Backward(owners, root));
  return true;
}

Rank::operator LoaderEnv() {
  Group& replicas = Axis("dp");
  LoaderEnv env;
  env.context = &context_;
  env.rank = replicas.rank();
  env.world = replicas.size();
  env.seed = seed_;
  env.shares_thread = strand_.shares_thread();
  return env;
}

void Rank::ConnectLayers() {
  Group& replicas = Axis("dp");
  if (layers_ != nullptr || replicas.size() == 1) return;
  layers_ = std::make_unique<LayerAxes>(
      base::OrThrow(strand_.MakeGroup(replicas.ranks())), *kernels_,
      strand_.wait());
  context_.set_collectives(layers_->axes());
}

Group& Rank::AddGroup(const std::vector<int>& ranks) {
  groups_.emplace_back(strand_, context_,
                       base::OrThrow(strand_.MakeGroup(ranks)), ranks,
                       *recorder_);
  return groups_.back();
}

Group& Rank::NewGroup(const std::vector<int>& ranks, CallPlace place) {
  const actors::CallNote::Scope call(strand_.call(), "NewGroup", place);
  return AddGroup(ranks);
}

Group& Rank::Axis(absl::string_view axis) {
  const int number = mesh_.AxisNumber(axis);
  if (number < 0) {
    std::vector<std::string> names;
    for (const pipeline::Axis& listed : mesh_.axes()) {
      names.push_back(listed.name);
    }
    throw base::StatusError(absl::InvalidArgumentError(
        absl::StrCat("the mesh has no axis \"", axis, "\"; it has ",
                     absl::StrJoin(names, ", "))));
  }
  if (axes_[number] == nullptr) {
    axes_[number] = &AddGroup(mesh_.Group(strand_.rank(), number));
  }
  return *axes_[number];
}

void Rank::FinishLater(std::unique_ptr<OptimizableCore> model) {
  ended_.push_back(std::move(model));
}

void Rank::Abandon(const absl::Status& why) {
  for (const auto& model : ended_) {
    model->Abandon(absl::Status(
        why.code(), absl::StrCat("rank ", number(), ": ", why.message())));
  }
}

void Rank::Finish() {
  for (const auto& model : ended_) model->Finish();
  ended_.clear();
  for (Group& group : groups_) group.Finish();
  // A device may have errors that nothing has waited for.
  base::OrThrow(
      nn::Synchronize(*kernels_, nn::Record(*kernels_, nn::Queue::kCompute)));
}

void Rank::Write(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace troupe
