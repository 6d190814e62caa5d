// The texts that a language model goes on with at one time.
//
//   TextBatch batch(logits, memory, options, listener);
//   TROUPE_RETURN_IF_ERROR(batch.Add(/*text=*/0, prompt));
//   while (batch.goes_on() && !batch.empty()) {
//     TROUPE_RETURN_IF_ERROR(batch.Step());     // a token of each text
//   }
//
// A prompt is a forward of its own. Then each step is one forward of the last
// token of all texts, except of those that are longer than the context: these
// have a forward each, without the cache. After a forward that has failed, each
// has one of its own, which fills the cache again.

#ifndef NN_GENERATE_TEXT_BATCH_H_
#define NN_GENERATE_TEXT_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn/generate/generate.h"

namespace troupe::nn {

class TextBatch {
 public:
  // `options` are valid. References outlive the batch.
  TextBatch(const LogitsFn& logits, Allocator& memory,
            const GenerateOptions& options, TextListener& listener);

  // Begins text number `text`, and generates its first token. Errors: those of
  // TextListener::OnError().
  absl::Status Add(std::size_t text, std::vector<std::int32_t> prompt);
  // Generates a token of each text. Errors: the same.
  absl::Status Step();

  bool has_place() const { return places_used() < options_.batch; }
  bool empty() const { return places_used() == 0; }
  // Whether the listener wants more.
  bool goes_on() const { return goes_on_; }

 private:
  struct Text {
    std::size_t number;
    std::vector<std::int32_t> tokens;
    TokenChoice choice;
    std::int64_t left;  // number of tokens to generate
    bool cached;        // whether the cache has all tokens but the last
    bool failed;        // whether the listener was told an error
  };

  std::int64_t places_used() const;
  std::int64_t SizeOf(const Text& text) const {
    return static_cast<std::int64_t>(text.tokens.size());
  }
  // Whether the text has room in the cache.
  bool Fits(const Text& text) const {
    return caches_ && SizeOf(text) <= options_.context;
  }
  TextPlaces PlacesOf(std::vector<TextPlaces::Row> rows) const;

  // Computes the last tokens of a text in a forward of their own. If they fit,
  // they become the text of that place of the cache.
  absl::Status Whole(std::int64_t place);
  absl::Status EachWhole(absl::Span<const std::int64_t> places);
  // Computes the last tokens of the texts at `places` with the cache.
  absl::Status Continue(absl::Span<const std::int64_t> places);
  absl::StatusOr<Tensor> ContinuedLogits(absl::Span<const std::int64_t> places);
  absl::StatusOr<Tensor> Logits(absl::Span<const std::int32_t> tokens,
                                std::int64_t place);
  absl::StatusOr<Tensor> Forward(const Tensor& tokens,
                                 const TextPlaces& places);
  // Whether the first of `seen`, logits with the cache, are those of all tokens
  // of `text`, except for rounding.
  absl::StatusOr<bool> Agrees(const Text& text,
                              const absl::StatusOr<Tensor>& seen);
  // Adds the token that the logits give.
  absl::Status Take(Text& text, absl::Span<const float> next);
  // Ends a text by an error. Returns what the listener says of it.
  absl::Status Fail(Text& text, const absl::Status& status);
  // Gives up the texts that are at their end.
  void RemoveEnded();

  const LogitsFn& logits_;
  Allocator& memory_;
  const GenerateOptions options_;
  TextListener& listener_;
  std::vector<std::unique_ptr<Text>> texts_;  // null: no text at this place
  bool caches_;
  bool compared_ = false;
  bool goes_on_ = true;
};

}  // namespace troupe::nn

#endif  // NN_GENERATE_TEXT_BATCH_H_
