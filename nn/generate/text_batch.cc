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
      Text{number, std::move(prompt), TokenChoice(sampling), options_.tokens,
           /*cached=*/false, /*failed=*/false});
  TROUPE_RETURN_IF_ERROR(Whole(static_cast<std::int64_t>(place)));
  RemoveEnded();
  return absl::OkStatus();
}

absl::Status TextBatch::Step() {
  std::vector<std::int64_t> continued, alone;
  for (std::size_t place = 0; place < texts_.size(); ++place) {
    if (texts_[place] == nullptr) continue;
    const Text& text = *texts_[place];
    (text.cached && Fits(text) ? continued : alone)
        .push_back(static_cast<std::int64_t>(place));
  }
  TROUPE_RETURN_IF_ERROR(EachWhole(alone));
  if (!continued.empty()) TROUPE_RETURN_IF_ERROR(Continue(continued));
  RemoveEnded();
  return absl::OkStatus();
}

absl::Status TextBatch::EachWhole(absl::Span<const std::int64_t> places) {
  for (const std::int64_t place : places) {
    TROUPE_RETURN_IF_ERROR(Whole(place));
  }
  return absl::OkStatus();
}

absl::Status TextBatch::Whole(std::int64_t place) {
  Text& text = *texts_[place];
  const bool kept = Fits(text);
  const std::size_t seen =
      std::min(text.tokens.size(), static_cast<std::size_t>(options_.context));
  const absl::StatusOr<Tensor> logits =
      Logits(absl::MakeConstSpan(text.tokens).last(seen), kept ? place : -1);
  if (!logits.ok()) return Fail(text, logits.status());
  text.cached = kept;
  // The model may leave out the other positions.
  const std::int64_t last =
      kept && logits->dim(1) == 1 ? 0 : static_cast<std::int64_t>(seen) - 1;
  return Take(text, RowOf(*logits, last));
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
  absl::StatusOr<Tensor> computed = logits_(tokens, places);
  if (!computed.ok()) {
    // Whatever computes may have begun anew, without what it had kept.
    for (const std::unique_ptr<Text>& text : texts_) {
      if (text != nullptr) text->cached = false;
    }
    return computed.status();
  }
  Tensor output = *std::move(computed);
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

absl::StatusOr<Tensor> TextBatch::ContinuedLogits(
    absl::Span<const std::int64_t> places) {
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
  return Forward(input, PlacesOf(std::move(at)));
}

absl::Status TextBatch::Continue(absl::Span<const std::int64_t> places) {
  // An error of a text alone may have emptied the cache.
  const bool cached =
      std::all_of(places.begin(), places.end(),
                  [&](std::int64_t place) { return texts_[place]->cached; });
  if (!cached) return EachWhole(places);
  absl::StatusOr<Tensor> logits = ContinuedLogits(places);
  if (!compared_) {
    const absl::StatusOr<bool> agrees = Agrees(*texts_[places[0]], logits);
    if (agrees.ok()) {
      caches_ = *agrees;
    } else {
      logits = agrees.status();
    }
  }
  if (!caches_ || !logits.ok()) return EachWhole(places);
  for (std::size_t i = 0; i < places.size(); ++i) {
    TROUPE_RETURN_IF_ERROR(
        Take(*texts_[places[i]], RowOf(*logits, static_cast<std::int64_t>(i))));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> TextBatch::Agrees(const Text& text,
                                       const absl::StatusOr<Tensor>& seen) {
  TROUPE_ASSIGN_OR_RETURN(const Tensor whole,
                          Logits(text.tokens, /*place=*/-1));
  compared_ = true;
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
  const absl::StatusOr<std::int32_t> token =
      text.choice.Next(next, text.tokens);
  if (!token.ok()) return Fail(text, token.status());
  --text.left;
  if (*token == options_.end_token || !listener_.OnToken(text.number, *token)) {
    text.left = 0;
  }
  text.tokens.push_back(*token);
  return absl::OkStatus();
}

absl::Status TextBatch::Fail(Text& text, const absl::Status& status) {
  text.left = 0;
  text.failed = true;
  return listener_.OnError(text.number, status);
}

void TextBatch::RemoveEnded() {
  for (std::unique_ptr<Text>& text : texts_) {
    if (text == nullptr || text->left > 0) continue;
    const std::size_t number = text->number;
    const bool failed = text->failed;
    text = nullptr;
    if (failed) continue;  // the listener knows
    goes_on_ = listener_.OnEnd(number) && goes_on_;
  }
}

}  // namespace troupe::nn
