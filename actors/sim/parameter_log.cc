#include "actors/sim/parameter_log.h"

#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace troupe::actors {
namespace {

constexpr std::uint64_t kStart = 14695981039346656037u;

std::uint64_t Mix(std::uint64_t hash, std::uint64_t value) {
  return (hash ^ value) * 1099511628211u;  // FNV-1a
}

std::uint64_t HashOf(const nn::Tensor& tensor) {
  std::uint64_t hash = kStart;
  const auto* bytes = static_cast<const unsigned char*>(tensor.raw());
  for (std::size_t i = 0; i < tensor.bytes(); ++i) hash = Mix(hash, bytes[i]);
  return hash;
}

}  // namespace

std::uint64_t ParameterLog::Note(int rank, std::int64_t step,
                                 const nn::ParameterArena& arena) {
  std::uint64_t all = kStart;
  auto& parameters = steps_[step];
  for (const nn::ArenaSlot& slot : arena.slots()) {
    const std::string& name = slot.parameter->name;
    const std::uint64_t hash = HashOf(slot.parameter->value);
    all = Mix(all, hash);
    const auto [found, fresh] = parameters.try_emplace(name, Value{hash, rank});
    if (fresh || found->second.hash == hash || !status_.ok()) continue;
    status_ = absl::FailedPreconditionError(
        absl::StrCat("ranks ", found->second.rank, " and ", rank,
                     " differ after step ", step + 1, " in ", name));
  }
  return all;
}

absl::Status Compare(const ParameterLog& a, const ParameterLog& b) {
  bool compared = false;
  for (const auto& [step, parameters] : a.steps_) {
    const auto theirs = b.steps_.find(step);
    if (theirs == b.steps_.end()) continue;
    compared = true;
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
