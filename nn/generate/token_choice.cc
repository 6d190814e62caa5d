#include "nn/generate/token_choice.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "nn/random/philox.h"

namespace troupe::nn {

absl::Status SamplingOptions::Validate() const {
  if (!(temperature >= 0 && std::isfinite(temperature))) {
    return base::FieldError<&SamplingOptions::temperature>(
        absl::StrCat(base::FieldName<&SamplingOptions::temperature>(), " = ",
                     temperature, ": must be at least 0"));
  }
  if (top_k < 0) {
    return base::FieldError<&SamplingOptions::top_k>(
        absl::StrCat(base::FieldName<&SamplingOptions::top_k>(), " = ", top_k,
                     ": must be at least 0"));
  }
  if (!(top_p > 0 && top_p <= 1)) {
    return base::FieldError<&SamplingOptions::top_p>(
        absl::StrCat(base::FieldName<&SamplingOptions::top_p>(), " = ", top_p,
                     ": must be above 0 and at most 1"));
  }
  if (!(min_p >= 0 && min_p <= 1)) {
    return base::FieldError<&SamplingOptions::min_p>(
        absl::StrCat(base::FieldName<&SamplingOptions::min_p>(), " = ", min_p,
                     ": must be at least 0 and at most 1"));
  }
  if (!(repetition_penalty > 0 && std::isfinite(repetition_penalty))) {
    return base::FieldError<&SamplingOptions::repetition_penalty>(absl::StrCat(
        base::FieldName<&SamplingOptions::repetition_penalty>(), " = ",
        repetition_penalty, ": must be above 0; 1 is no penalty"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::int32_t> TokenChoice::Next(
    absl::Span<const float> logits, absl::Span<const std::int32_t> text) {
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (std::isfinite(logits[i])) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the model's logit of token ", i, " is ", logits[i],
                     "; use an earlier checkpoint of the run"));
  }
  logits = Penalized(logits, text);
  if (options_.temperature == 0) {
    ++chosen_;
    return static_cast<std::int32_t>(
        std::max_element(logits.begin(), logits.end()) - logits.begin());
  }
  Order(logits);
  return Draw(logits);
}

absl::Span<const float> TokenChoice::Penalized(
    absl::Span<const float> logits, absl::Span<const std::int32_t> text) {
  if (options_.repetition_penalty == 1) return logits;
  const float penalty = static_cast<float>(options_.repetition_penalty);
  penalized_.assign(logits.begin(), logits.end());
  for (const std::int32_t token : text) {
    const auto i = static_cast<std::size_t>(token);
    if (token < 0 || i >= logits.size()) continue;
    // A token counts once, however often it came, so the model's logit is read.
    penalized_[i] = logits[i] < 0 ? logits[i] * penalty : logits[i] / penalty;
  }
  return penalized_;
}

void TokenChoice::Order(absl::Span<const float> logits) {
  order_.resize(logits.size());
  std::iota(order_.begin(), order_.end(), 0);
  const auto likelier = [&](std::int32_t a, std::int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  };
  const std::size_t k =
      options_.top_k == 0
          ? order_.size()
          : std::min(order_.size(), static_cast<std::size_t>(options_.top_k));
  std::partial_sort(order_.begin(), order_.begin() + k, order_.end(), likelier);
  order_.resize(k);
}

std::int32_t TokenChoice::Draw(absl::Span<const float> logits) {
  const double highest = logits[order_[0]];
  weights_.clear();
  double sum = 0;
  for (const std::int32_t token : order_) {
    weights_.push_back(
        std::exp((logits[token] - highest) / options_.temperature));
    sum += weights_.back();
  }
  // The nucleus: the likeliest is always in it.
  const double enough = options_.top_p * sum;
  double kept = 0;
  std::size_t count = 0;
  while (count < weights_.size() && (count == 0 || kept < enough)) {
    kept += weights_[count++];
  }
  // The likeliest has weight 1.
  while (count > 1 && weights_[count - 1] < options_.min_p) {
    kept -= weights_[--count];
  }

  RandomPosition position;
  position.step = chosen_++;
  position.path = HashName("nn.generate");
  RandomStream draws(RandomKey(options_.seed, Purpose::kData), position);
  double left = draws.UniformF64() * kept;
  for (std::size_t i = 0; i + 1 < count; ++i) {
    if (left < weights_[i]) return order_[i];
    left -= weights_[i];
  }
  return order_[count - 1];
}

}  // namespace troupe::nn
