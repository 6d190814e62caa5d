#include "actors/sim/parameter_log.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/fnv_hash.h"

namespace troupe::actors {
namespace {

// Returns a hash of elements [begin, end) of a tensor. Those of parts add up to
// that of the whole.
std::uint64_t HashOf(const nn::Tensor& tensor, std::int64_t begin,
                     std::int64_t end) {
  const std::size_t size = nn::SizeOf(tensor.dtype());
  const auto* const bytes = static_cast<const std::byte*>(tensor.raw());
  std::uint64_t sum = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, bytes + i * size, size);
    base::FnvHash hash;
    hash.Add(static_cast<std::uint64_t>(i));
    hash.Add(bits);
    sum += hash.value();
  }
  return sum;
}

// Pieces of a parameter have names of their own.
std::string NameOf(const nn::Parameter& parameter) {
  const nn::Sharding& sharding = parameter.sharding;
  return sharding.is_split() ? absl::StrCat(parameter.name, " at ",
                                            sharding.axis, "=", sharding.coord)
                             : parameter.name;
}

}  // namespace

std::uint64_t ParameterLog::HashOf(const Parameter& parameter) {
  std::uint64_t sum = 0;
  for (const auto& [owner, value] : parameter) sum += value.hash;
  return sum;
}

std::uint64_t ParameterLog::Note(int rank, std::int64_t step,
                                 const nn::ParameterArena& arena, bool slices) {
  base::FnvHash all;
  auto& parameters = steps_[step];
  for (const nn::ArenaSlot& slot : arena.slots()) {
    const std::string name = NameOf(*slot.parameter);
    const std::int64_t elems = slot.parameter->value.numel();
    Owner owner = 0;
    std::int64_t begin = 0, end = elems;
    if (slices && slot.bucket != nn::kNoBucket) {
      const nn::ArenaRange owned = arena.Owned(slot.bucket);
      owner = arena.owned().owner();
      begin = std::clamp<std::int64_t>(owned.begin - slot.begin, 0, elems);
      end = std::clamp<std::int64_t>(owned.end - slot.begin, 0, elems);
    }
    const std::uint64_t hash =
        actors::HashOf(slot.parameter->value, begin, end);
    all.Add(hash);
    const auto [found, fresh] =
        parameters[name].try_emplace(owner, Value{hash, rank});
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
    for (const auto& [name, parameter] : parameters) {
      const auto found = theirs->second.find(name);
      if (found != theirs->second.end() &&
          ParameterLog::HashOf(found->second) ==
              ParameterLog::HashOf(parameter)) {
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
