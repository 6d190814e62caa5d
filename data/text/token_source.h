// A long sequence of tokens, in memory or in a file, read by position.
//
//   TROUPE_ASSIGN_OR_RETURN(TokenSourcePtr tokens,
//                           MakeTokenSource({5, 0, 3}, /*vocab_size=*/6));
//   std::vector<std::int64_t> two(2);
//   absl::Status s = tokens->Read(/*begin=*/1, absl::MakeSpan(two));  // 0, 3
//
// Lifetime: sources are immutable and shared. Threads: any number may read at
// once.

#ifndef DATA_TEXT_TOKEN_SOURCE_H_
#define DATA_TEXT_TOKEN_SOURCE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "data/text/tokenizer.h"

namespace troupe::data {

class TokenSource {
 public:
  virtual ~TokenSource() = default;

  virtual std::int64_t size() const = 0;
  // Returns the limit that all tokens are below.
  virtual std::int64_t vocab_size() const = 0;

  // Reads tokens [begin, begin + into.size()), which lie inside the sequence.
  // Errors are those of the file.
  virtual absl::Status Read(std::int64_t begin,
                            absl::Span<std::int64_t> into) const = 0;
};

using TokenSourcePtr = std::shared_ptr<const TokenSource>;

// Returns a source of `tokens` in memory.
//   kInvalidArgument: a token is not in [0, vocab_size); names its position.
absl::StatusOr<TokenSourcePtr> MakeTokenSource(std::vector<Token> tokens,
                                               std::int64_t vocab_size);

// Returns the sources one after the other; at least one, of one vocabulary.
TokenSourcePtr JoinTokenSources(std::vector<TokenSourcePtr> sources);

}  // namespace troupe::data

#endif  // DATA_TEXT_TOKEN_SOURCE_H_
