// Declares names that the usage comments in data/text/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_DATA_TEXT_H_
#define TESTS_USAGE_WORDS_DATA_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/files/file_system.h"
#include "data/text/token_file.h"
#include "data/text/token_source.h"
#include "data/text/tokenizer.h"

namespace troupe::data::usage {

extern base::FileSystem& files;
extern const std::shared_ptr<base::FileSystem> disk;
extern const TokenSourcePtr tokens;

namespace file_pool_h {
extern const absl::Span<char> bytes;
}

namespace token_shards_h {
extern const TokenFileOptions file_options;
}

namespace utf8_h {
extern const absl::string_view text;
}

}  // namespace troupe::data::usage

#endif  // TESTS_USAGE_WORDS_DATA_TEXT_H_
