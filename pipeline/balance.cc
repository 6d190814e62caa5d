#include "pipeline/balance.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/modules/recompute.h"
#include "nn/modules/sequential.h"

namespace troupe::pipeline {
namespace {

// A part of the model that no cut divides.
struct Unit {
  std::string path;
  double cost = 0;
};

void AddUnits(nn::Module& module, const std::string& prefix,
              std::vector<Unit>& units) {
  for (const std::unique_ptr<nn::Module>& child : module.children()) {
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

// The unit that a module, or a parameter, lies in; null: none.
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

// Where the stages but the first begin, so that the dearest is cheapest.
std::vector<int> Divide(const std::vector<Unit>& units, int stages) {
  const int count = static_cast<int>(units.size());
  std::vector<double> before(count + 1, 0);
  for (int i = 0; i < count; ++i) before[i + 1] = before[i] + units[i].cost;
  // best[s][i]: of units [i, count) in s stages; next[s][i]: where the second
  // of them begins.
  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> best(stages + 1,
                                        std::vector<double>(count + 1, kNever));
  std::vector<std::vector<int>> next(stages + 1,
                                     std::vector<int>(count + 1, count));
  for (int i = 0; i < count; ++i) best[1][i] = before[count] - before[i];
  for (int s = 2; s <= stages; ++s) {
    for (int i = 0; i <= count - s; ++i) {
      for (int j = i + 1; j <= count - s + 1; ++j) {
        const double dearest = std::max(before[j] - before[i], best[s - 1][j]);
        if (dearest > best[s][i]) continue;
        best[s][i] = dearest;
        next[s][i] = j;
      }
    }
  }
  std::vector<int> begins;
  for (int s = stages, i = 0; s > 1; --s) {
    i = next[s][i];
    begins.push_back(i);
  }
  return begins;
}

}  // namespace

absl::StatusOr<std::vector<Cut>> BalanceCuts(const nn::ModelFactory& factory,
                                             const nn::TensorSpec& input,
                                             nn::Device device, int stages,
                                             Balance balance) {
  const std::unique_ptr<nn::Module> model = factory();
  if (model == nullptr) {
    return absl::InvalidArgumentError("the model factory returned no model");
  }
  std::vector<Unit> units;
  if (dynamic_cast<nn::Sequential*>(model.get()) != nullptr) {
    AddUnits(*model, "", units);
  }
  if (static_cast<int>(units.size()) < stages) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the model has ", units.size(), " layers in Sequentials, too few for ",
        stages, " stages"));
  }
  TROUPE_RETURN_IF_ERROR(Weigh(*model, input, device, balance, units));
  std::vector<Cut> cuts;
  for (const int i : Divide(units, stages)) cuts.emplace_back(units[i].path);
  return cuts;
}

absl::StatusOr<StepCosts> EstimateCosts(const nn::ModelFactory& factory,
                                        absl::Span<const std::string> begins,
                                        const nn::TensorSpec& input,
                                        nn::Device device) {
  StepCosts costs;
  nn::TensorSpec between = input;
  for (int stage = 0; stage <= static_cast<int>(begins.size()); ++stage) {
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<nn::Module> module,
                            BuildStage(factory, begins, stage));
    nn::ShapeRecord record;
    TROUPE_ASSIGN_OR_RETURN(
        const nn::TensorList output,
        nn::ShapeOnlyForward(*module, {between}, device, record));
    TROUPE_ASSIGN_OR_RETURN(const double kept,
                            nn::KeptActivationBytes(*module, between, device));
    const double flops = record.flops();
    costs.stages.push_back({flops, flops, flops, kept});
    between = {output[0].shape(), output[0].dtype()};
  }
  return costs;
}

}  // namespace troupe::pipeline
