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

}  // namespace

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
