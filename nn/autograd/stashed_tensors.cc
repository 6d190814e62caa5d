#include "nn/autograd/stashed_tensors.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace troupe::nn {
namespace {

std::string Called(absl::string_view module) {
  return module.empty() ? "another module" : absl::StrCat("module ", module);
}

}  // namespace

absl::Status StashedTensors::Add(absl::string_view name,
                                 absl::string_view module,
                                 const Tensor& tensor) {
  if (name.empty()) {
    return absl::InvalidArgumentError(
        "stashes a tensor without a name; give it one");
  }
  if (!tensor.defined()) {
    return absl::InvalidArgumentError(
        absl::StrCat("stashes an undefined tensor as \"", name,
                     "\"; stash one with values"));
  }
  const auto taken = taken_by_.find(std::string(name));
  if (taken != taken_by_.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "stashes \"", name, "\", a name under which ", Called(taken->second),
        " has popped another tensor; use a name once in a model"));
  }
  for (const StashedTensor& other : waiting_) {
    if (other.name != name) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("stashes \"", name, "\", which ", Called(other.module),
                     " has stashed already; use a name once in a model"));
  }
  waiting_.push_back({std::string(name), std::string(module), tensor});
  return absl::OkStatus();
}

absl::StatusOr<Tensor> StashedTensors::Take(absl::string_view name,
                                            absl::string_view module) {
  const auto found =
      std::find_if(waiting_.begin(), waiting_.end(),
                   [&](const StashedTensor& t) { return t.name == name; });
  if (found != waiting_.end()) {
    Tensor tensor = std::move(found->tensor);
    taken_by_.emplace(found->name, module);
    waiting_.erase(found);
    return tensor;
  }
  const auto taken = taken_by_.find(std::string(name));
  if (taken != taken_by_.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "pops \"", name, "\", which ", Called(taken->second),
        " has popped already; stash it under a second name for a second use"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("pops \"", name,
                   "\", which no module before it has stashed; stash it "
                   "there"));
}

bool StashedTensors::IsWaiting(absl::string_view name) const {
  return std::any_of(waiting_.begin(), waiting_.end(),
                     [&](const StashedTensor& t) { return t.name == name; });
}

absl::Status StashedTensors::CheckAllTaken() const {
  if (waiting_.empty()) return absl::OkStatus();
  const StashedTensor& first = waiting_.front();
  return absl::InvalidArgumentError(
      absl::StrCat(Called(first.module), " stashes \"", first.name,
                   "\", and no module pops it; pop it, or leave it out"));
}

}  // namespace troupe::nn
