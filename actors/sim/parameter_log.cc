#include "actors/sim/parameter_log.h"

#include "absl/strings/str_cat.h"
#include "base/fnv_hash.h"

namespace troupe::actors {
namespace {

std::uint64_t HashOf(const nn::Tensor& tensor) {
  base::FnvHash hash;
  hash.AddBytes(tensor.raw(), tensor.bytes());
  return hash.value();
}

// Pieces of a parameter have names of their own.
std::string NameOf(const nn::Parameter& parameter) {
  const nn::Sharding& sharding = parameter.sharding;
  return sharding.is_split() ? absl::StrCat(parameter.name, " at ",
                                            sharding.axis, "=", sharding.coord)
                             : parameter.name;
}

}  // namespace

std::uint64_t ParameterLog::Note(int rank, std::int64_t step,
                                 const nn::ParameterArena& arena) {
  base::FnvHash all;
  auto& parameters = steps_[step];
  for (const nn::ArenaSlot& slot : arena.slots()) {
    const std::string name = NameOf(*slot.parameter);
    const std::uint64_t hash = HashOf(slot.parameter->value);
    all.Add(hash);
    const auto [found, fresh] = parameters.try_emplace(name, Value{hash, rank});
    if (fresh || found->second.hash == hash || !status_.ok()) continue;
    status_ = absl::FailedPreconditionError(
        absl::StrCat("ranks ", found->second.rank, " and ", rank,
                     " differ after step ", step + 1, " in ", name));
  }
  return all.value();
}

absl::Status Compare(const ParameterLog& a, const ParameterLog& b) {
  bool compared = false;
  for (const auto& [step, parameters] : a.steps_) {
    const auto theirs = b.steps_.find(step);
    if (theirs == b.steps_.end()) continue;
    compared = true;
    if (parameters.size() != theirs->second.size()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the runs have ", parameters.size(), " and ", theirs->second.size(),
          " parameters after step ", step + 1));
    }
    for (const auto& [name, value] : parameters) {
      const auto found = theirs->second.find(name);
      if (found != theirs->second.end() && found->second.hash == value.hash) {
        continue;
      }
      return absl::FailedPreconditionError(
          absl::StrCat("the runs differ after step ", step + 1, " in ", name));
    }
  }
  if (compared) return absl::OkStatus();
  return absl::FailedPreconditionError("the runs have no step in common");
}

}  // namespace troupe::actors
