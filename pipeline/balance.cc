#include "pipeline/balance.h"

#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/modules/recompute.h"
#include "nn/modules/sequential.h"
#include "pipeline/cut_search.h"

namespace troupe::pipeline {
namespace {

// A part of the model that no cut divides.
struct Unit {
  std::string path;
  double cost = 0;
};

// A child without a name, whose parameters have names of the model's own, can
// be no cut: it is a part of the unit before it.
void AddUnits(nn::Module& module, const std::string& prefix,
              std::vector<Unit>& units) {
  for (const std::unique_ptr<nn::Module>& child : module.children()) {
    if (child->name().empty() && !units.empty()) continue;
    const std::string path = absl::StrCat(prefix, child->name());
    const bool goes_on =
        dynamic_cast<nn::Sequential*>(child.get()) != nullptr &&
        !child->children().empty();
    if (goes_on) {
      AddUnits(*child, path + ".", units);
    } else {
      units.push_back({path});
    }
  }
}

// Returns the unit that a module or a parameter lies in; null: none.
Unit* UnitOf(std::vector<Unit>& units, const std::string& path) {
  for (Unit& unit : units) {
    if (path == unit.path || absl::StartsWith(path, unit.path + ".")) {
      return &unit;
    }
  }
  return nullptr;
}

absl::Status Weigh(nn::Module& model, const nn::TensorSpec& input,
                   nn::Device device, Balance balance,
                   std::vector<Unit>& units) {
  if (balance == Balance::kLayers) {
    for (Unit& unit : units) unit.cost = 1;
    return absl::OkStatus();
  }
  if (balance == Balance::kParameters) {
    for (const nn::Parameter* parameter : model.Parameters()) {
      Unit* const unit = UnitOf(units, parameter->name);
      if (unit != nullptr) {
        unit->cost += static_cast<double>(parameter->shape.numel());
      }
    }
    return absl::OkStatus();
  }
  nn::ShapeRecord record;
  TROUPE_RETURN_IF_ERROR(
      nn::ShapeOnlyForward(model, {input}, device, record).status());
  for (const nn::ShapeRecord::Op& op : record.ops) {
    Unit* const unit = UnitOf(units, op.module);
    if (unit != nullptr) unit->cost += op.flops;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Unit>> UnitsOf(nn::Module& model, int stages) {
  std::vector<Unit> units;
  if (dynamic_cast<nn::Sequential*>(&model) != nullptr) {
    AddUnits(model, "", units);
  }
  if (static_cast<int>(units.size()) >= stages) return units;
  return absl::InvalidArgumentError(absl::StrCat(
      "the model has ", units.size(), " layers in Sequentials, too few for ",
      stages, " stages; take fewer"));
}

absl::StatusOr<std::unique_ptr<nn::Module>> MakeModel(
    const nn::ModelFactory& factory) {
  std::unique_ptr<nn::Module> model = factory();
  if (model != nullptr) return model;
  return absl::InvalidArgumentError(
      "the ModelFactory returned null; return a module from it");
}

}  // namespace

absl::StatusOr<std::vector<Cut>> BalanceCuts(const nn::ModelFactory& factory,
                                             const nn::TensorSpec& input,
                                             nn::Device device, int stages,
                                             Balance balance, Places places) {
  TROUPE_ASSIGN_OR_RETURN(
      const std::unique_ptr<nn::Module> model,
      BuildStage(factory, /*begins=*/{}, /*stage=*/0, places));
  TROUPE_ASSIGN_OR_RETURN(std::vector<Unit> units, UnitsOf(*model, stages));
  TROUPE_RETURN_IF_ERROR(Weigh(*model, input, device, balance, units));
  ModelCosts costs;
  for (const Unit& unit : units) {
    UnitCosts& weight = costs.units.emplace_back();
    weight.path = unit.path;
    weight.costs = {unit.cost, 0, 0, 0};
  }
  CutOptions options;
  options.placement = LoopedPlacement(stages, /*chunks=*/1);
  TROUPE_ASSIGN_OR_RETURN(FoundCuts found, FindCuts(costs, options));
  return std::move(found.cuts);
}

absl::StatusOr<std::vector<std::string>> CutPlaces(
    const nn::ModelFactory& factory) {
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<nn::Module> model,
                          MakeModel(factory));
  TROUPE_ASSIGN_OR_RETURN(const std::vector<Unit> units,
                          UnitsOf(*model, /*stages=*/1));
  std::vector<std::string> paths;
  for (const Unit& unit : units) paths.push_back(unit.path);
  return paths;
}

absl::StatusOr<StepCosts> EstimateCosts(const nn::ModelFactory& factory,
                                        absl::Span<const std::string> begins,
                                        const nn::TensorSpec& input,
                                        nn::Device device, Places places) {
  StepCosts costs;
  std::vector<nn::TensorSpec> between = {input};
  nn::StashedTensors stashed;
  for (int stage = 0; stage <= static_cast<int>(begins.size()); ++stage) {
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<nn::Module> module,
                            BuildStage(factory, begins, stage, places));
    TROUPE_ASSIGN_OR_RETURN(
        const double kept,
        nn::KeptActivationBytes(*module, between, stashed, device));
    nn::ShapeRecord record;
    TROUPE_ASSIGN_OR_RETURN(
        const nn::TensorList outputs,
        nn::ShapeOnlyForward(*module, between, stashed, device, record));
    const double flops = record.flops();
    costs.stages.push_back({flops, flops, flops, kept});
    between.clear();
    for (const nn::Tensor& output : outputs) {
      between.push_back({output.shape(), output.dtype()});
    }
  }
  return costs;
}

}  // namespace troupe::pipeline
