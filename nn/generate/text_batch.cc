#include "nn/generate/text_batch.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::nn {
namespace {

// Without a cache, a text grows by one token at a time, and each length would
// be a new shape for the kernels. So its end is padded to a power of two, at
// least this length: a causal model's rows do not depend on later tokens. With
// a cache there are few such forwards, and the end is padded to a multiple.
constexpr std::int64_t kShortestForward = 16;
// Limit on the difference of logits by rounding, in parts of the largest: that
// of bf16, the coarsest dtype of a model, times the depth of one.
constexpr float kDifferenceMax = 0.05f;

std::int64_t ForwardLength(std::int64_t tokens, std::int64_t context,
                           bool caches) {
  std::int64_t length = kShortestForward;
  while (length < tokens) length += caches ? kShortestForward : length;
  return std::min(length, context);
}

// Returns row `row` of logits [..., vocabulary].
absl::Span<const float> RowOf(const Tensor& logits, std::int64_t row) {
  const std::int64_t vocabulary = logits.dim(2);
  return absl::MakeConstSpan(logits.data<float>() + row * vocabulary,
                             static_cast<std::size_t>(vocabulary));
}

}  // namespace

TextBatch::TextBatch(const LogitsFn& logits, Allocator& memory,
                     const GenerateOptions& options, TextListener& listener)
    : logits_(logits),
      memory_(memory),
      options_(options),
      listener_(listener),
      caches_(options.cache) {}

std::int64_t TextBatch::places_used() const {
  return std::count_if(texts_.begin(), texts_.end(),
                       [](const auto& text) { return text != nullptr; });
}

TextPlaces TextBatch::PlacesOf(std::vector<TextPlaces::Row> rows) const {
  TextPlaces places;
  places.texts = options_.batch;
  places.context = options_.context;
  places.rows = std::move(rows);
  return places;
}

absl::Status TextBatch::Add(std::size_t number,
                            std::vector<std::int32_t> prompt) {
  if (options_.tokens < 1) {
    goes_on_ = listener_.OnEnd(number);
    return absl::OkStatus();
  }
  std::size_t place = 0;
  while (place < texts_.size() && texts_[place] != nullptr) ++place;
  if (place == texts_.size()) texts_.push_back(nullptr);
  SamplingOptions sampling = options_.sampling;
  sampling.seed += number;
  texts_[place] = std::make_unique<Text>(
      Text{number, std::move(prompt), TokenChoice(sampling), options_.tokens});
  TROUPE_RETURN_IF_ERROR(Whole(*texts_[place], static_cast<int>(place)));
  RemoveEnded();
  return absl::OkStatus();
}

absl::Status TextBatch::Step() {
  std::vector<std::int64_t> continued;
  for (std::size_t place = 0; place < texts_.size(); ++place) {
    if (texts_[place] == nullptr) continue;
    Text& text = *texts_[place];
    if (Continues(text)) {
      continued.push_back(static_cast<std::int64_t>(place));
    } else {
      TROUPE_RETURN_IF_ERROR(Whole(text, /*place=*/-1));
    }
  }
  if (!continued.empty()) TROUPE_RETURN_IF_ERROR(Continue(continued));
  RemoveEnded();
  return absl::OkStatus();
}

absl::Status TextBatch::Whole(Text& text, std::int64_t place) {
  const bool kept = place >= 0 && Continues(text);
  const std::size_t seen =
      std::min(text.tokens.size(), static_cast<std::size_t>(options_.context));
  TROUPE_ASSIGN_OR_RETURN(
      const Tensor logits,
      Logits(absl::MakeConstSpan(text.tokens).last(seen), kept ? place : -1));
  // The model may leave out the other positions.
  const std::int64_t last =
      kept && logits.dim(1) == 1 ? 0 : static_cast<std::int64_t>(seen) - 1;
  return Take(text, RowOf(logits, last));
}

absl::StatusOr<Tensor> TextBatch::Logits(absl::Span<const std::int32_t> text,
                                         std::int64_t place) {
  const std::int64_t length = ForwardLength(
      static_cast<std::int64_t>(text.size()), options_.context, caches_);
  TROUPE_ASSIGN_OR_RETURN(Tensor input,
                          Tensor::Create({1, length}, DType::kI64, memory_));
  std::int64_t* tokens = input.data<std::int64_t>();
  std::fill(std::copy(text.begin(), text.end(), tokens), tokens + length, 0);
  TextPlaces places;
  if (place >= 0) {
    places = PlacesOf({{place, 0}});
    places.wanted = static_cast<std::int64_t>(text.size()) - 1;
  }
  return Forward(input, places);
}

absl::StatusOr<Tensor> TextBatch::Forward(const Tensor& tokens,
                                          const TextPlaces& places) {
  TROUPE_ASSIGN_OR_RETURN(Tensor output, logits_(tokens, places));
  const Shape& shape = output.shape();
  const std::int64_t rows = tokens.dim(0), length = tokens.dim(1);
  const bool is_wanted =
      places.wanted >= 0 && shape.rank() == 3 && shape[0] == 1 && shape[1] == 1;
  if (shape.rank() == 3 && shape[0] == rows &&
      (shape[1] == length || is_wanted) && shape[2] > 0 &&
      output.dtype() == DType::kF32) {
    return output;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the model gives ", DTypeName(output.dtype()), " ", shape.ToString(),
      " for a text of ", length, " tokens, not f32 [", rows, ", ", length,
      ", vocabulary]; give a model of language"));
}

absl::Status TextBatch::Continue(absl::Span<const std::int64_t> places) {
  const auto count = static_cast<std::int64_t>(places.size());
  TROUPE_ASSIGN_OR_RETURN(Tensor input,
                          Tensor::Create({count, 1}, DType::kI64, memory_));
  std::int64_t* const tokens = input.data<std::int64_t>();
  std::vector<TextPlaces::Row> at(places.size());
  for (std::int64_t i = 0; i < count; ++i) {
    const Text& text = *texts_[places[i]];
    tokens[i] = text.tokens.back();
    at[i] = {places[i], SizeOf(text) - 1};
  }
  const absl::StatusOr<Tensor> logits = Forward(input, PlacesOf(std::move(at)));
  if (!compared_) {
    TROUPE_ASSIGN_OR_RETURN(caches_, Agrees(*texts_[places[0]], logits));
  }
  if (caches_) TROUPE_RETURN_IF_ERROR(logits.status());
  for (std::int64_t i = 0; i < count; ++i) {
    Text& text = *texts_[places[i]];
    TROUPE_RETURN_IF_ERROR(caches_ ? Take(text, RowOf(*logits, i))
                                   : Whole(text, /*place=*/-1));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> TextBatch::Agrees(const Text& text,
                                       const absl::StatusOr<Tensor>& seen) {
  compared_ = true;
  TROUPE_ASSIGN_OR_RETURN(const Tensor whole,
                          Logits(text.tokens, /*place=*/-1));
  if (!seen.ok()) return false;  // such as of a model for one sample
  const absl::Span<const float> wanted = RowOf(whole, SizeOf(text) - 1);
  const absl::Span<const float> next = RowOf(*seen, 0);
  float largest = 0, difference = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    // A number that is not finite is refused when a token is chosen.
    if (!std::isfinite(wanted[i]) || !std::isfinite(next[i])) return false;
    largest = std::max(largest, std::abs(wanted[i]));
    difference = std::max(difference, std::abs(wanted[i] - next[i]));
  }
  return difference <= kDifferenceMax * largest;
}

absl::Status TextBatch::Take(Text& text, absl::Span<const float> next) {
  TROUPE_ASSIGN_OR_RETURN(const std::int32_t token,
                          text.choice.Next(next, text.tokens));
  --text.left;
  if (token == options_.end_token || !listener_.OnToken(text.number, token)) {
    text.left = 0;
  }
  text.tokens.push_back(token);
  return absl::OkStatus();
}

void TextBatch::RemoveEnded() {
  for (std::unique_ptr<Text>& text : texts_) {
    if (text == nullptr || text->left > 0) continue;
    const std::size_t number = text->number;
    text = nullptr;
    goes_on_ = listener_.OnEnd(number) && goes_on_;
  }
}

}  // namespace troupe::nn
