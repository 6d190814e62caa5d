#include "pipeline/ties.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "pipeline/group_id.h"

namespace troupe::pipeline {
namespace {

// The stages that list a parameter, with its index in each.
using Holders = std::vector<std::pair<int, int>>;

// Returns the holders of parameters that several stages list, by name.
std::map<std::string, Holders> Shared(absl::Span<const StagePlan> stages) {
  absl::flat_hash_map<std::string, Holders> all;
  for (int s = 0; s < static_cast<int>(stages.size()); ++s) {
    const std::vector<std::string>& names = stages[s].parameters;
    for (int i = 0; i < static_cast<int>(names.size()); ++i) {
      all[names[i]].emplace_back(s, i);
    }
  }
  std::map<std::string, Holders> shared;
  for (auto& [name, holders] : all) {
    if (holders.size() > 1) shared.emplace(name, std::move(holders));
  }
  return shared;
}

absl::Status Bad(int stage, const std::string& name, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(
      "plan: stages[", stage, "] ", what, " ", name,
      ", which an earlier stage has too: copies of a parameter must be alike"));
}

std::vector<std::string> NamesIn(const StagePlan& stage, int bucket) {
  std::vector<std::string> names;
  for (const int i : stage.buckets[bucket]) {
    names.push_back(stage.parameters[i]);
  }
  return names;
}

// Returns the bucket of each parameter of a stage, or -1.
std::vector<int> BucketsByParameter(const StagePlan& stage) {
  std::vector<int> buckets(stage.parameters.size(), -1);
  for (int k = 0; k < static_cast<int>(stage.buckets.size()); ++k) {
    for (const int i : stage.buckets[k]) buckets[i] = k;
  }
  return buckets;
}

// Checks that a copy of a parameter agrees with its first copy.
absl::Status CheckCopy(absl::Span<const StagePlan> stages,
                       const std::vector<std::vector<int>>& bucket_of,
                       const std::string& name,
                       const std::pair<int, int>& first,
                       const std::pair<int, int>& copy) {
  const StagePlan& a = stages[first.first];
  const StagePlan& b = stages[copy.first];
  if (a.parameter_elems[first.second] != b.parameter_elems[copy.second] ||
      a.parameter_dtypes[first.second] != b.parameter_dtypes[copy.second]) {
    return Bad(copy.first, name, "has another size or dtype of");
  }
  const int in_a = bucket_of[first.first][first.second];
  const int in_b = bucket_of[copy.first][copy.second];
  if ((in_a < 0) != (in_b < 0)) {
    return Bad(copy.first, name, in_b < 0 ? "does not train" : "alone trains");
  }
  if (in_a >= 0 && NamesIn(a, in_a) != NamesIn(b, in_b)) {
    return Bad(copy.first, name, "has another bucket around");
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<Tie> TiesOf(absl::Span<const StagePlan> stages) {
  const std::map<std::string, Holders> shared = Shared(stages);
  std::vector<Tie> ties;
  if (shared.empty()) return ties;
  std::map<std::string, std::size_t> numbers;  // keyed by first parameter
  for (int s = 0; s < static_cast<int>(stages.size()); ++s) {
    const StagePlan& stage = stages[s];
    for (int k = 0; k < static_cast<int>(stage.buckets.size()); ++k) {
      const std::string& name = stage.parameters[stage.buckets[k][0]];
      if (shared.count(name) == 0) continue;
      const auto [found, is_new] = numbers.try_emplace(name, ties.size());
      if (is_new) ties.push_back({name, {}});
      ties[found->second].members.push_back({s, k});
    }
  }
  return ties;
}

std::vector<int> PlacesOf(const Tie& tie, absl::Span<const StagePlan> stages) {
  std::set<int> places;
  for (const TieMember& member : tie.members) {
    places.insert(stages[member.stage].place.pp);
  }
  return {places.begin(), places.end()};
}

std::set<std::string> CopiesIn(absl::Span<const StagePlan> stages, int stage) {
  const std::vector<std::string>& names = stages[stage].parameters;
  const std::set<std::string> own(names.begin(), names.end());
  std::set<std::string> copies;
  for (const StagePlan& earlier : stages.first(stage)) {
    for (const std::string& name : earlier.parameters) {
      if (own.count(name) > 0) copies.insert(name);
    }
  }
  return copies;
}

std::vector<int> TiedBuckets(absl::Span<const StagePlan> stages,
                             const std::vector<int>& numbers) {
  std::vector<int> by_stage(stages.size());
  for (const Tie& tie : TiesOf(stages)) {
    for (const TieMember& member : tie.members) ++by_stage[member.stage];
  }
  std::vector<int> counts;
  for (const int stage : numbers) counts.push_back(by_stage[stage]);
  return counts;
}

absl::Status CheckTies(absl::Span<const StagePlan> stages) {
  const std::map<std::string, Holders> shared = Shared(stages);
  if (shared.empty()) return absl::OkStatus();
  std::vector<std::vector<int>> bucket_of;
  for (const StagePlan& stage : stages) {
    bucket_of.push_back(BucketsByParameter(stage));
  }
  for (const auto& [name, holders] : shared) {
    for (std::size_t i = 1; i < holders.size(); ++i) {
      TROUPE_RETURN_IF_ERROR(
          CheckCopy(stages, bucket_of, name, holders[0], holders[i]));
    }
  }
  // Buckets are equal, so all parameters of a bucket with a copy are copies.
  const std::vector<Tie> ties = TiesOf(stages);
  std::vector<int> first(stages.size());  // tied bucket, by stage
  for (std::size_t s = 0; s < stages.size(); ++s) {
    first[s] = static_cast<int>(stages[s].buckets.size());
  }
  for (const Tie& tie : ties) {
    for (const TieMember& member : tie.members) --first[member.stage];
  }
  for (const Tie& tie : ties) {
    for (const TieMember& member : tie.members) {
      if (member.bucket >= first[member.stage]) continue;
      return Bad(member.stage, tie.name,
                 "has a bucket of its own behind that of");
    }
  }
  if (ties.size() <= static_cast<std::size_t>(kTiesMax)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("plan: the stages share more than ", kTiesMax,
                   " buckets; raise the bytes of a bucket"));
}

}  // namespace troupe::pipeline
