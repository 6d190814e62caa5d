#include "data/sample_weights.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "data/content_hash.h"
#include "nn/random/philox.h"

namespace troupe::data {
namespace {

// Limit on the bytes of a line that a message shows.
constexpr std::size_t kShownBytesMax = 40;

}  // namespace

absl::StatusOr<SampleWeightsPtr> SampleWeights::Create(
    const std::vector<double>& weights) {
  std::vector<double> sums;
  sums.reserve(weights.size());
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] >= 0) || !std::isfinite(sum + weights[i])) {
      return absl::InvalidArgumentError(
          absl::StrCat("the weight of sample ", i, " is ", weights[i],
                       "; weights must be at least 0 and have a finite sum"));
    }
    sums.push_back(sum += weights[i]);
  }
  if (sum == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("all ", weights.size(),
                     " weights are 0; give a sample a weight above 0"));
  }
  ContentHash hash;
  hash.Add(weights);
  return SampleWeightsPtr(new SampleWeights(std::move(sums), hash.ToString()));
}

std::int64_t SampleWeights::SampleAt(double uniform) const {
  TROUPE_CHECK(0 <= uniform && uniform < 1, "a draw is in [0, 1)");
  const double sum = sums_.back();
  auto drawn = std::upper_bound(sums_.begin(), sums_.end(), uniform * sum);
  if (drawn == sums_.end()) {
    // The product was rounded up to the sum: takes the last sample that adds
    // to it.
    drawn = std::lower_bound(sums_.begin(), sums_.end(), sum);
  }
  return drawn - sums_.begin();
}

void SampleWeights::Draw(std::uint64_t seed, std::int64_t epoch,
                         std::vector<std::int64_t>& order) const {
  TROUPE_CHECK(0 <= epoch && epoch <= INT64_C(0xffffffff),
               "an epoch fits the random counter");
  nn::RandomPosition position;
  position.step = static_cast<std::uint32_t>(epoch);
  position.path = nn::HashName("data.weighted_order");
  nn::RandomStream draws(nn::RandomKey(seed, nn::Purpose::kShuffle), position);
  order.resize(sums_.size());
  for (std::int64_t& sample : order) sample = SampleAt(draws.UniformF64());
}

absl::StatusOr<std::vector<double>> ReadSampleWeights(base::FileSystem& files,
                                                      const std::string& path,
                                                      std::int64_t samples) {
  TROUPE_ASSIGN_OR_RETURN(const std::string text,
                          base::ReadWholeFile(files, path, kWeightsBytesMax));
  std::vector<double> weights;
  std::int64_t line = 0, count = 0;
  for (absl::string_view entry : absl::StrSplit(text, '\n')) {
    ++line;
    entry = absl::StripAsciiWhitespace(entry);
    if (entry.empty()) continue;
    double weight = 0;
    if (!absl::SimpleAtod(entry, &weight)) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ":", line, ": \"",
                       absl::CHexEscape(entry.substr(0, kShownBytesMax)),
                       "\" is not a number; write one weight a line"));
    }
    // Lines beyond the samples are only counted.
    if (++count <= samples) weights.push_back(weight);
  }
  if (count != samples) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " has ", count, " weights for ", samples,
        " training samples; write one for each, in the order of the samples"));
  }
  return weights;
}

absl::StatusOr<SampleWeightsPtr> ClassBalancedWeights(const Dataset& dataset) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::int64_t> labels,
                          dataset.Labels());
  std::vector<std::int64_t> counts(dataset.spec().num_classes);
  for (const std::int64_t label : labels) {
    if (label >= 0 && label < dataset.spec().num_classes) ++counts[label];
  }
  std::vector<double> weights;
  weights.reserve(labels.size());
  for (const std::int64_t label : labels) {
    const bool counted = label >= 0 && label < dataset.spec().num_classes;
    weights.push_back(counted ? 1.0 / double(counts[label]) : 0.0);
  }
  return SampleWeights::Create(weights);
}

}  // namespace troupe::data
