#include "data/text/token_source.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::data {
namespace {

class TokensInMemory : public TokenSource {
 public:
  TokensInMemory(std::vector<Token> tokens, std::int64_t vocab_size)
      : tokens_(std::move(tokens)), vocab_size_(vocab_size) {}

  std::int64_t size() const override {
    return static_cast<std::int64_t>(tokens_.size());
  }
  std::int64_t vocab_size() const override { return vocab_size_; }

  absl::Status Read(std::int64_t begin,
                    absl::Span<std::int64_t> into) const override {
    const auto count = static_cast<std::int64_t>(into.size());
    TROUPE_CHECK(0 <= begin && begin + count <= size(),
                 "tokens are read inside the sequence");
    std::copy_n(tokens_.begin() + begin, count, into.begin());
    return absl::OkStatus();
  }

 private:
  const std::vector<Token> tokens_;
  const std::int64_t vocab_size_;
};

class JoinedTokens : public TokenSource {
 public:
  explicit JoinedTokens(std::vector<TokenSourcePtr> sources)
      : sources_(std::move(sources)) {
    std::int64_t size = 0;
    for (const TokenSourcePtr& source : sources_) {
      ends_.push_back(size += source->size());
    }
  }

  std::int64_t size() const override { return ends_.back(); }
  std::int64_t vocab_size() const override {
    return sources_.front()->vocab_size();
  }

  absl::Status Read(std::int64_t begin,
                    absl::Span<std::int64_t> into) const override {
    TROUPE_CHECK(
        0 <= begin && begin + static_cast<std::int64_t>(into.size()) <= size(),
        "tokens are read inside the sequence");
    std::size_t i =
        std::upper_bound(ends_.begin(), ends_.end(), begin) - ends_.begin();
    while (!into.empty()) {
      const std::int64_t rest = ends_[i] - begin;
      const std::size_t count =
          std::min(into.size(), static_cast<std::size_t>(rest));
      const std::int64_t at = sources_[i]->size() - rest;
      TROUPE_RETURN_IF_ERROR(sources_[i]->Read(at, into.subspan(0, count)));
      begin += static_cast<std::int64_t>(count);
      into.remove_prefix(count);
      ++i;
    }
    return absl::OkStatus();
  }

 private:
  const std::vector<TokenSourcePtr> sources_;
  std::vector<std::int64_t> ends_;  // positions in the whole
};

}  // namespace

TokenSourcePtr JoinTokenSources(std::vector<TokenSourcePtr> sources) {
  TROUPE_CHECK(!sources.empty(), "sources to join");
  for (const TokenSourcePtr& source : sources) {
    TROUPE_CHECK(source->vocab_size() == sources.front()->vocab_size(),
                 "joined sources have one vocabulary");
  }
  if (sources.size() == 1) return sources.front();
  return std::make_shared<JoinedTokens>(std::move(sources));
}

absl::StatusOr<TokenSourcePtr> MakeTokenSource(std::vector<Token> tokens,
                                               std::int64_t vocab_size) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= 0 && tokens[i] < vocab_size) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("token ", i, " is ", tokens[i], ", which a vocabulary of ",
                     vocab_size, " does not have; give its real size"));
  }
  return TokenSourcePtr(
      std::make_shared<TokensInMemory>(std::move(tokens), vocab_size));
}

}  // namespace troupe::data
