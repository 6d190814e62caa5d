#include "troupe/rank.h"

#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_error.h"

namespace troupe {

Rank::Rank(actors::ProgramRank& strand, std::unique_ptr<nn::Kernels> kernels,
           std::uint64_t seed, const pipeline::Mesh& mesh)
    : strand_(strand),
      kernels_(std::move(kernels)),
      seed_(seed),
      mesh_(mesh),
      context_(*kernels_, &tape_),
      axes_(mesh.axis_count()) {
  context_.set_owner(this);
  nn::StepPosition position;
  position.seed = seed;
  position.rank = number();
  context_.set_random(position);
  std::vector<int> all(size());
  std::iota(all.begin(), all.end(), 0);
  world_ = &AddGroup(all);
}

Group& Rank::AddGroup(const std::vector<int>& ranks) {
  groups_.emplace_back(strand_, context_,
                       base::OrThrow(strand_.MakeGroup(ranks)), ranks);
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

void Rank::Finish() {
  for (Group& group : groups_) group.Finish();
}

void Rank::Write(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace troupe
