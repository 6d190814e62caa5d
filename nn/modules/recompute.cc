#include "nn/modules/recompute.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/name_pattern.h"
#include "nn/modules/sequential.h"

namespace troupe::nn {
namespace {

using Visit = std::function<void(const std::string& name, Module& module)>;

// Calls visit() for every module below `module`, parents first.
void ForEachBelow(Module& module, const std::string& prefix,
                  const Visit& visit) {
  for (const std::unique_ptr<Module>& child : module.children()) {
    const std::string name = absl::StrCat(prefix, child->name());
    visit(name, *child);
    ForEachBelow(*child, name + ".", visit);
  }
}

void AddBlocks(Module& module, const std::string& prefix,
               std::vector<ModelBlock>& blocks) {
  for (const std::unique_ptr<Module>& child : module.children()) {
    const std::string name = absl::StrCat(prefix, child->name());
    if (dynamic_cast<Sequential*>(child.get()) != nullptr) {
      AddBlocks(*child, name + ".", blocks);
    } else if (!child->children().empty() && !child->many_tensors()) {
      blocks.push_back({name, child.get()});
    }
  }
}

bool IsBelow(const std::string& module, const std::string& ancestor) {
  return module == ancestor || absl::StartsWith(module, ancestor + ".");
}

// Limit on the names in an error.
constexpr int kNamesShownMax = 8;

absl::Status ChooseByName(Module& model, const std::string& pattern) {
  absl::Status status = absl::OkStatus();
  std::string outer;  // the last module that matched
  std::string names;  // the first ones right below the model
  int shown = 0;
  ForEachBelow(model, "", [&](const std::string& name, Module& module) {
    if (name.find('.') == std::string::npos && ++shown <= kNamesShownMax) {
      absl::StrAppend(&names, " ", name);
    }
    if (!base::MatchesPattern(pattern, name)) return;
    // The modules below a module that runs again do so with it.
    if (!outer.empty() && IsBelow(name, outer)) return;
    outer = name;
    if (module.many_tensors()) {
      status.Update(absl::InvalidArgumentError(
          absl::StrCat("module ", name,
                       " takes or gives several tensors, and cannot run again "
                       "in backward; leave it out")));
    }
    module.set_recomputes(true);
  });
  if (outer.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no module of the model is called \"", pattern,
                     "\"; choose among", names, " or those in them"));
  }
  return status;
}

double BytesOf(const ShapeRecord::Op& op) {
  return static_cast<double>(op.output.numel()) * SizeOf(op.dtype);
}

absl::StatusOr<ShapeRecord> Record(Module& model,
                                   absl::Span<const TensorSpec> inputs,
                                   StashedTensors& stashed, Device device) {
  ShapeRecord record;
  TROUPE_RETURN_IF_ERROR(
      ShapeOnlyForward(model, inputs, stashed, device, record).status());
  return record;
}

// Returns the bytes that a module that runs again does not keep: the outputs of
// its ops except the last.
double SavedBytes(const ShapeRecord& record, const std::string& module) {
  double bytes = 0, last = 0;
  for (const ShapeRecord::Op& op : record.ops) {
    if (!IsBelow(op.module, module)) continue;
    bytes += last;
    last = BytesOf(op);
  }
  return bytes;
}

double KeptBytesOf(Module& model, const ShapeRecord& record) {
  double bytes = 0;
  for (const ShapeRecord::Op& op : record.ops) bytes += BytesOf(op);
  std::string outer;  // runs again, with all below it
  ForEachBelow(model, "", [&](const std::string& name, Module& module) {
    if (!module.recomputes()) return;
    if (!outer.empty() && IsBelow(name, outer)) return;
    outer = name;
    bytes -= SavedBytes(record, name);
  });
  return bytes;
}

absl::Status FitInto(double budget_bytes, Module& model,
                     const TensorSpec& input, Device device) {
  StashedTensors none;
  TROUPE_ASSIGN_OR_RETURN(const ShapeRecord record,
                          Record(model, {input}, none, device));
  std::vector<std::pair<double, Module*>> savings;
  for (const ModelBlock& block : BlocksOf(model)) {
    if (block.module->recomputes()) continue;
    savings.emplace_back(SavedBytes(record, block.name), block.module);
  }
  // The largest first; equal ones in the order of the model.
  std::stable_sort(
      savings.begin(), savings.end(),
      [](const auto& a, const auto& b) { return a.first > b.first; });
  double kept = KeptBytesOf(model, record);
  for (const auto& [bytes, module] : savings) {
    if (kept <= budget_bytes) break;
    module->set_recomputes(true);
    kept -= bytes;
  }
  if (kept <= budget_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("activations take ", kept,
                   " bytes of a micro-batch even where every "
                   "block runs again, and the budget is ",
                   budget_bytes, "; raise it, or make micro-batches smaller"));
}

}  // namespace

std::vector<ModelBlock> BlocksOf(Module& model) {
  std::vector<ModelBlock> blocks;
  if (dynamic_cast<Sequential*>(&model) != nullptr) {
    AddBlocks(model, "", blocks);
  }
  return blocks;
}

absl::Status ApplyRecompute(Module& model, const RecomputeOptions& options,
                            const TensorSpec& input, Device device) {
  if (options.every < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "RecomputeOptions::every must be at least 0, not ", options.every));
  }
  for (const std::string& pattern : options.modules) {
    TROUPE_RETURN_IF_ERROR(ChooseByName(model, pattern));
  }
  const std::vector<ModelBlock> blocks = BlocksOf(model);
  for (std::size_t i = 0; options.every > 0 && i < blocks.size();
       i += options.every) {
    blocks[i].module->set_recomputes(true);
  }
  if (!options.budget_bytes) return absl::OkStatus();
  return FitInto(*options.budget_bytes, model, input, device);
}

absl::StatusOr<double> KeptActivationBytes(Module& model,
                                           absl::Span<const TensorSpec> inputs,
                                           const StashedTensors& stashed,
                                           Device device) {
  StashedTensors left = stashed;
  TROUPE_ASSIGN_OR_RETURN(const ShapeRecord record,
                          Record(model, inputs, left, device));
  double bytes = KeptBytesOf(model, record);
  for (const StashedTensor& received : stashed.waiting()) {
    if (left.IsWaiting(received.name)) continue;  // passed on
    bytes += static_cast<double>(received.tensor.bytes());
  }
  return bytes;
}

}  // namespace troupe::nn
