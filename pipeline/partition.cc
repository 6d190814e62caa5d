#include "pipeline/partition.h"

#include <utility>

#include "base/check.h"
#include "nn/modules/sequential.h"

namespace troupe::pipeline {

absl::StatusOr<std::unique_ptr<nn::Module>> BuildStage(
    const nn::ModelFactory& factory, const std::vector<int>& cuts, int stage) {
  std::unique_ptr<nn::Module> model = factory();
  if (model == nullptr) {
    return absl::InvalidArgumentError("the model factory returned no model");
  }
  // Before any cut: full names, and names that are taken in another stage.
  TROUPE_RETURN_IF_ERROR(model->CheckDeclarations());
  model->Parameters();
  if (cuts.empty()) return model;
  auto* sequential = dynamic_cast<nn::Sequential*>(model.get());
  if (sequential == nullptr) {
    return absl::InvalidArgumentError(
        "only a Sequential can be cut into stages; make the model one, or set "
        "mesh.pp to 1");
  }
  model.release();
  TROUPE_ASSIGN_OR_RETURN(
      std::vector<std::unique_ptr<nn::Sequential>> parts,
      nn::Sequential::Cut(std::unique_ptr<nn::Sequential>(sequential), cuts));
  return std::unique_ptr<nn::Module>(std::move(parts[stage]));
}

}  // namespace troupe::pipeline
