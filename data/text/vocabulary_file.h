// Writes and reads a vocabulary as JSON: one object from each token's text to
// its number, as in GPT-2's vocab.json.
//
//   const std::string json = VocabularyToJson({"\n", "a"});
//   // {"\n": 0, "a": 1}
//   TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> tokens,
//                           ParseVocabulary(json, "vocab.json"));
//
// The numbers are 0..n-1, each once, in any order. Texts are UTF-8.

#ifndef DATA_TEXT_VOCABULARY_FILE_H_
#define DATA_TEXT_VOCABULARY_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace troupe::data {

// Limits on such a file. GPT-2's has 1 MB and 50,257 tokens, Llama-3's 128,256.
inline constexpr std::int64_t kVocabularyBytesMax = 64 << 20;
inline constexpr std::int64_t kVocabSizeMax = 1 << 22;

// Returns the texts in the order of their numbers. Errors name `name`.
//   kDataLoss: not one JSON object of integers, no token, a number that is
//              missing or there twice, or a text that is there twice.
absl::StatusOr<std::vector<std::string>> ParseVocabulary(
    absl::string_view json, absl::string_view name);

std::string VocabularyToJson(const std::vector<std::string>& tokens);

}  // namespace troupe::data

#endif  // DATA_TEXT_VOCABULARY_FILE_H_
