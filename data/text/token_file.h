// Reads files of tokens in the formats of nanoGPT and llm.c.
//
//   TokenFileOptions options;
//   options.vocab_size = 50257;
//   TROUPE_ASSIGN_OR_RETURN(TokenSourcePtr tokens,
//                           OpenTokenFile(files, "train.bin", options));
//   tokens->size();
//
// Numbers are little-endian. A file of llm.c begins with 256 i32: magic,
// version, number of tokens, zeros.
//
// | form | magic, version | tokens |
// | --- | --- | --- |
// | llm.c, GPT-2 | 20240520, 1 | u16 |
// | llm.c, Llama-3 | 20240801, 7 | u32 |
// | nanoGPT, bare | none | `bare_type` |
//
// (Read as u16, both magics begin with a token above 55,000, which GPT-2's
// vocabulary does not have: no bare file of it is taken for one of llm.c.)
//
// A text, another file of llm.c (a model, magic 20240326) and files of formats
// that base/foreign_format.h knows (an .npy array, an archive) are refused.
//
// Each Read() is one call of ReadAt(): from the system's page cache that costs
// about as much as a memory map, it uses base::FileSystem, and a file that is
// truncated meanwhile, or a disk that fails, is an error and not a signal.
// Read() also checks that tokens are below vocab_size, so that opening is
// cheap.

#ifndef DATA_TEXT_TOKEN_FILE_H_
#define DATA_TEXT_TOKEN_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/files/file_system.h"
#include "data/text/token_source.h"

namespace troupe::data {

enum class TokenType { kU16, kU32 };

struct TokenFileOptions {
  TokenType bare_type = TokenType::kU16;
  // Limit that all tokens in the file are below; the default is GPT-2's.
  std::int64_t vocab_size = 50257;
};

// Errors name the file and the byte.
//   kInvalidArgument: a file of another format, which is named.
//   kDataLoss:      a header of another version, a size that does not fit the
//                   header or the type of the tokens; of Read(): a token that
//                   is not below vocab_size.
//   others:         from the file.
absl::StatusOr<TokenSourcePtr> OpenTokenFile(base::FileSystem& files,
                                             const std::string& path,
                                             const TokenFileOptions& options);

// The same for an open file; `path` is its name in errors.
absl::StatusOr<TokenSourcePtr> OpenTokenFile(
    std::unique_ptr<base::ReadableFile> file, const std::string& path,
    const TokenFileOptions& options);

}  // namespace troupe::data

#endif  // DATA_TEXT_TOKEN_FILE_H_
