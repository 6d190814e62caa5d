#include "actors/planning/expected_memory.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "actors/chunks/user_loss.h"
#include "actors/spec/optimizer_states.h"
#include "base/check.h"
#include "base/format_bytes.h"
#include "nn/modules/recompute.h"
#include "pipeline/stage_buckets.h"
#include "pipeline/table/action_rules.h"

namespace troupe::actors {
namespace {

double BytesOf(std::int64_t elems, nn::DType dtype) {
  return static_cast<double>(elems) * static_cast<double>(nn::SizeOf(dtype));
}

// Returns the largest number of micro-batches of a chunk that are between their
// forward and the end of their backward. `last`: size of the last micro-batch,
// as a part of the others'.
double MostUnderWay(const pipeline::StepTable& table, int chunk, double last) {
  double now = 0, most = 0;
  const int last_index = table.micro_batches() - 1;
  for (const pipeline::Action& action : table.actions) {
    if (action.chunk != chunk) continue;
    const double counts = action.index == last_index ? last : 1;
    if (action.kind == pipeline::ActionKind::kForward) {
      most = std::max(most, now += counts);
    } else if (pipeline::EndsBackward(action.kind)) {
      now -= counts;
    }
  }
  return most;
}

class Estimate {
 public:
  Estimate(const JobSpec& spec, const pipeline::Plan& plan)
      : spec_(spec), plan_(plan) {}

  absl::StatusOr<ExpectedMemory> OfRank(int rank) {
    ExpectedMemory memory;
    memory.ranks = plan_.mesh.size();
    const std::vector<int> stages = plan_.StagesOf(rank);
    memory.parameters += static_cast<double>(pipeline::MostGathered(
        plan_, plan_.mesh.CoordOf(rank, pipeline::kPpAxis)));
    for (std::size_t chunk = 0; chunk < stages.size(); ++chunk) {
      const int number = stages[chunk];
      TROUPE_RETURN_IF_ERROR(AddParameters(plan_.stages[number], memory));
      TROUPE_RETURN_IF_ERROR(AddActivations(
          number,
          MostUnderWay(plan_.RankPlanOf(rank).train, static_cast<int>(chunk),
                       plan_.last_micro_batch_part()),
          memory));
    }
    return memory;
  }

 private:
  absl::Status AddParameters(const pipeline::StagePlan& stage,
                             ExpectedMemory& memory) {
    std::vector<bool> trained(stage.parameters.size(), true);
    for (const int i : stage.frozen) trained[i] = false;
    for (std::size_t i = 0; i < stage.parameters.size(); ++i) {
      const std::int64_t elems = stage.parameter_elems[i];
      const nn::DType dtype = stage.parameter_dtypes[i];
      const bool owned = trained[i] && plan_.gathers_values();
      memory.parameters += BytesOf(elems, dtype) / (owned ? plan_.owners() : 1);
      if (!trained[i]) continue;
      memory.gradients += BytesOf(elems, plan_.grad_dtype.value_or(dtype)) /
                          (plan_.SlicesGradients() ? plan_.owners() : 1);
      const auto [states, is_new] = states_.try_emplace(dtype);
      if (is_new) {
        TROUPE_ASSIGN_OR_RETURN(states->second, OptimizerStates(spec_, dtype));
      }
      for (const auto& [name, of_state] : states->second) {
        memory.optimizer += BytesOf(elems, of_state) / plan_.owners();
      }
    }
    if (plan_.SlicesGradients()) AddWholeBuckets(stage, memory);
    return absl::OkStatus();
  }

  // Adds the gradients of one bucket that are computed, or two if a layer has
  // parameters in both, and those of another that are reduced, before the
  // slices of all are kept. Inline reductions wait. Where ranks along tp have
  // pieces, a bucket of copies is computed beside one of pieces.
  void AddWholeBuckets(const pipeline::StagePlan& stage,
                       ExpectedMemory& memory) const {
    std::map<nn::DType, double> largest;  // an arena has its own blocks
    for (const std::vector<int>& bucket : stage.buckets) {
      double bytes = 0;
      for (const int i : bucket) {
        bytes += BytesOf(stage.parameter_elems[i],
                         plan_.grad_dtype.value_or(stage.parameter_dtypes[i]));
      }
      if (bucket.empty()) continue;
      double& most = largest[stage.parameter_dtypes[bucket[0]]];
      most = std::max(most, bytes);
    }
    const int pieces = CountPieces(stage);
    const bool has_both =
        pieces > 0 && pieces < static_cast<int>(stage.buckets.size());
    int blocks = 1 + (SplitsLayers(stage) ? 1 : 0) + (has_both ? 1 : 0);
    // Another is reduced, and one more waits for the gather before its
    // reduction in the table.
    if (!plan_.ranks[0].reduce_inline) {
      blocks += plan_.gathers_values() ? 2 : 1;
    }
    for (const auto& [dtype, bytes] : largest) {
      memory.gradients += bytes * blocks;
    }
  }

  // Returns the number of buckets of pieces.
  static int CountPieces(const pipeline::StagePlan& stage) {
    int pieces = 0;
    for (int k = 0; k < static_cast<int>(stage.buckets.size()); ++k) {
      pieces += stage.IsSplitBucket(k);
    }
    return pieces;
  }

  // Returns whether a layer has parameters in two buckets, both of pieces or
  // neither.
  static bool SplitsLayers(const pipeline::StagePlan& stage) {
    // Layers in earlier buckets, and whether these are of pieces.
    std::set<std::pair<bool, absl::string_view>> before;
    for (int k = 0; k < static_cast<int>(stage.buckets.size()); ++k) {
      std::set<absl::string_view> layers;
      for (const int i : stage.buckets[k]) {
        const absl::string_view name = stage.parameters[i];
        layers.insert(name.substr(0, name.rfind('.')));
      }
      for (const absl::string_view layer : layers) {
        if (!before.insert({stage.IsSplitBucket(k), layer}).second) return true;
      }
    }
    return false;
  }

  absl::Status AddActivations(int number, double under_way,
                              ExpectedMemory& memory) {
    const pipeline::StagePlan& stage = plan_.stages[number];
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<nn::Module> module,
                            BuildChunk(spec_, plan_, number, /*rank=*/0));
    for (const nn::Buffer* buffer : module->Buffers()) {
      memory.parameters += BytesOf(buffer->shape.numel(), buffer->dtype);
    }
    for (const nn::Parameter* parameter : module->Parameters()) {
      if (!UsedTwice(*parameter)) continue;
      memory.gradients += BytesOf(parameter->shape.numel(),
                                  plan_.grad_dtype.value_or(parameter->dtype));
    }
    TROUPE_ASSIGN_OR_RETURN(const nn::StashedTensors skips,
                            stage.SkipsOn(plan_.device));
    TROUPE_ASSIGN_OR_RETURN(
        const double kept,
        nn::KeptActivationBytes(*module, stage.inputs(), skips, plan_.device));
    memory.activations += kept * under_way;
    return absl::OkStatus();
  }

  // Returns whether two modules of one stage share the parameter: each use has
  // a gradient of its own.
  bool UsedTwice(const nn::Parameter& parameter) const {
    if (!parameter.requires_grad || parameter.other_names.size() != 1) {
      return false;
    }
    int stages = 0;
    for (const pipeline::StagePlan& stage : plan_.stages) {
      stages += static_cast<int>(std::count(
          stage.parameters.begin(), stage.parameters.end(), parameter.name));
    }
    return stages == 1;
  }

  const JobSpec& spec_;
  const pipeline::Plan& plan_;
  std::map<nn::DType, std::map<std::string, nn::DType>> states_;
};

}  // namespace

std::string ExpectedMemory::ToString() const {
  std::vector<std::pair<double, const char*>> parts = {
      {activations, "activations"},
      {parameters, "parameters"},
      {gradients, "gradients"},
      {optimizer, "optimizer"}};
  std::stable_sort(
      parts.begin(), parts.end(),
      [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (const auto& [bytes, name] : parts) {
    if (bytes == 0) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", name, " ",
                    base::FormatBytes(static_cast<std::uint64_t>(bytes)));
  }
  return absl::StrCat(base::FormatBytes(static_cast<std::uint64_t>(total())),
                      ranks > 1 ? " a rank (" : " (", text, ")");
}

absl::StatusOr<std::vector<ExpectedMemory>> ExpectMemoryOfRanks(
    const JobSpec& spec, const pipeline::Plan& plan) {
  Estimate estimate(spec, plan);
  std::vector<ExpectedMemory> ranks;
  for (int pp = 0; pp < plan.mesh.pp(); ++pp) {
    TROUPE_ASSIGN_OR_RETURN(
        const ExpectedMemory memory,
        estimate.OfRank(plan.mesh.RankOf({/*dp=*/0, pp, /*tp=*/0})));
    ranks.push_back(memory);
  }
  return ranks;
}

absl::StatusOr<ExpectedMemory> ExpectMemory(const JobSpec& spec,
                                            const pipeline::Plan& plan) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<ExpectedMemory> ranks,
                          ExpectMemoryOfRanks(spec, plan));
  return *std::max_element(
      ranks.begin(), ranks.end(),
      [](const auto& a, const auto& b) { return a.total() < b.total(); });
}

}  // namespace troupe::actors
