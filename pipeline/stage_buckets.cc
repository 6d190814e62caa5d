#include "pipeline/stage_buckets.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "absl/types/span.h"
#include "pipeline/bucket_limits.h"

namespace troupe::pipeline {
namespace {

// Parameters with gradients, by dtype, and whether they are split: a bucket has
// one kind.
struct Trained {
  struct OfOneType {
    nn::DType dtype;
    bool split;
    std::vector<int> numbers;
    std::vector<std::int64_t> bytes;
  };
  std::vector<OfOneType> types;  // ordered by first use

  void Add(const StagePlan& stage, int number, std::int64_t grad_bytes) {
    const nn::DType dtype = stage.parameter_dtypes[number];
    const bool split = stage.IsSplit(number);
    auto type = std::find_if(types.begin(), types.end(), [&](const auto& t) {
      return t.dtype == dtype && t.split == split;
    });
    if (type == types.end()) {
      types.push_back({dtype, split, {}, {}});
      type = types.end() - 1;
    }
    type->numbers.push_back(number);
    type->bytes.push_back(grad_bytes);
  }

  // Returns the buckets, ordered by when their last gradient is complete.
  std::vector<std::vector<int>> Buckets(
      absl::Span<const std::int64_t> limits) const {
    std::vector<std::vector<int>> all;
    for (const OfOneType& type : types) {
      for (std::vector<int>& bucket : AssignToBuckets(type.bytes, limits)) {
        for (int& i : bucket) i = type.numbers[i];
        all.push_back(std::move(bucket));
      }
    }
    // Indices descend within a bucket, and over the buckets of a dtype.
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
      return a.back() > b.back();
    });
    return all;
  }
};

class Filler {
 public:
  Filler(const StageBucketOptions& options,
         std::vector<std::vector<bool>> trained, std::vector<StagePlan>& stages)
      : options_(options),
        limits_(
            options.limits.empty()
                ? std::vector<std::int64_t>{options.buckets.first_bucket_bytes,
                                            options.buckets.bucket_bytes}
                : options.limits),
        trained_(std::move(trained)),
        stages_(stages) {}

  void Fill() {
    FindHolders();
    for (int s = 0; s < static_cast<int>(stages_.size()); ++s) FillOwn(s);
    FillTied();
  }

 private:
  // The stages that list a parameter, and its index in each.
  using Holders = std::map<int, int>;

  void FindHolders() {
    for (int s = 0; s < static_cast<int>(stages_.size()); ++s) {
      const std::vector<std::string>& names = stages_[s].parameters;
      for (int i = 0; i < static_cast<int>(names.size()); ++i) {
        holders_[names[i]].emplace(s, i);
      }
    }
    for (const auto& [name, holders] : holders_) {
      if (holders.size() == 1) continue;
      const bool trained =
          std::any_of(holders.begin(), holders.end(),
                      [&](const auto& at) { return Trains(at); });
      for (const auto& [s, i] : holders) trained_[s][i] = trained;
    }
  }

  bool Trains(const std::pair<const int, int>& at) const {
    return trained_[at.first][at.second];
  }

  std::int64_t GradBytes(const StagePlan& stage, int i) const {
    const nn::DType dtype =
        options_.grad_dtype.value_or(stage.parameter_dtypes[i]);
    return stage.parameter_elems[i] *
           static_cast<std::int64_t>(nn::SizeOf(dtype));
  }

  // Fills the buckets of parameters that no other stage has.
  void FillOwn(int s) {
    StagePlan& stage = stages_[s];
    Trained own, delayed;
    for (int i = 0; i < static_cast<int>(stage.parameters.size()); ++i) {
      if (!trained_[s][i]) {
        stage.frozen.push_back(i);
      } else if (holders_[stage.parameters[i]].size() == 1) {
        const bool late = options_.delayed.count(stage.parameters[i]) > 0;
        (late ? delayed : own).Add(stage, i, GradBytes(stage, i));
      }
    }
    stage.buckets = own.Buckets(limits_);
    constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
    for (std::vector<int>& bucket : delayed.Buckets({kNoLimit})) {
      stage.buckets.push_back(std::move(bucket));
    }
  }

  // Fills the buckets of shared parameters: those that the same stages share go
  // together, in the order of the first of these stages.
  void FillTied() {
    std::map<std::vector<int>, Trained> sets;  // keyed by the sharing stages
    for (int s = 0; s < static_cast<int>(stages_.size()); ++s) {
      const StagePlan& stage = stages_[s];
      for (int i = 0; i < static_cast<int>(stage.parameters.size()); ++i) {
        const Holders& holders = holders_[stage.parameters[i]];
        const bool is_first = holders.begin()->first == s;
        if (holders.size() == 1 || !is_first || !trained_[s][i]) continue;
        std::vector<int> members;
        for (const auto& holder : holders) members.push_back(holder.first);
        sets[members].Add(stage, i, GradBytes(stage, i));
      }
    }
    for (const auto& [members, shared] : sets) {
      for (const std::vector<int>& bucket : shared.Buckets(limits_)) {
        AddTied(members, bucket);
      }
    }
  }

  // `bucket`: indices of parameters in the first member.
  void AddTied(const std::vector<int>& members,
               const std::vector<int>& bucket) {
    for (const int s : members) {
      std::vector<int>& own = stages_[s].buckets.emplace_back();
      for (const int i : bucket) {
        own.push_back(holders_[stages_[members[0]].parameters[i]][s]);
      }
    }
  }

  const StageBucketOptions options_;
  const std::vector<std::int64_t> limits_;
  std::vector<std::vector<bool>> trained_;
  std::vector<StagePlan>& stages_;
  std::map<std::string, Holders> holders_;
};

}  // namespace

void FillBuckets(const StageBucketOptions& options,
                 std::vector<std::vector<bool>> trained,
                 std::vector<StagePlan>& stages) {
  Filler(options, std::move(trained), stages).Fill();
}

}  // namespace troupe::pipeline
