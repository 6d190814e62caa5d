#include "data/text/token_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/foreign_format.h"
#include "data/text/utf8.h"

namespace troupe::data {
namespace {

constexpr std::int64_t kHeaderInts = 256;
constexpr std::int64_t kHeaderBytes = kHeaderInts * 4;
static_assert(kHeaderBytes >= std::int64_t{base::kFormatHeadBytes});
// Least size of a file that may be taken for a text.
constexpr std::size_t kTextHeadBytesMin = 64;

struct KnownHeader {
  std::int32_t magic;
  std::int32_t version;
  TokenType type;
};
constexpr KnownHeader kKnownHeaders[] = {
    {20240520, 1, TokenType::kU16},
    {20240801, 7, TokenType::kU32},
};

std::int64_t BytesOf(TokenType type) { return type == TokenType::kU16 ? 2 : 4; }

// Position of the tokens in a file.
struct Layout {
  std::int64_t begin = 0;  // byte
  std::int64_t count = 0;
  TokenType type = TokenType::kU16;
};

// Widens the numbers of `type` at the front of `into` to i64, in place. It goes
// from the last to the first, since each overwrites later ones.
template <typename T>
void WidenInPlace(absl::Span<std::int64_t> into) {
  const char* packed = reinterpret_cast<const char*>(into.data());
  for (std::size_t i = into.size(); i-- > 0;) {
    T value;
    std::memcpy(&value, packed + i * sizeof(T), sizeof(T));
    into[i] = static_cast<std::int64_t>(value);
  }
}

class TokensInFile : public TokenSource {
 public:
  TokensInFile(std::unique_ptr<base::ReadableFile> file, std::string path,
               const Layout& layout, std::int64_t vocab_size)
      : file_(std::move(file)),
        path_(std::move(path)),
        layout_(layout),
        vocab_size_(vocab_size) {}

  std::int64_t size() const override { return layout_.count; }
  std::int64_t vocab_size() const override { return vocab_size_; }

  absl::Status Read(std::int64_t begin,
                    absl::Span<std::int64_t> into) const override {
    TROUPE_CHECK(0 <= begin && begin + static_cast<std::int64_t>(into.size()) <=
                                   layout_.count,
                 "tokens are read inside the sequence");
    const std::int64_t width = BytesOf(layout_.type);
    TROUPE_RETURN_IF_ERROR(file_->ReadAt(
        layout_.begin + begin * width,
        absl::MakeSpan(reinterpret_cast<char*>(into.data()),
                       into.size() * static_cast<std::size_t>(width))));
    if (layout_.type == TokenType::kU16) {
      WidenInPlace<std::uint16_t>(into);
    } else {
      WidenInPlace<std::uint32_t>(into);
    }
    for (std::size_t i = 0; i < into.size(); ++i) {
      if (into[i] < vocab_size_) continue;
      const std::int64_t at = begin + static_cast<std::int64_t>(i);
      return absl::DataLossError(absl::StrCat(
          path_, ": token ", at, " at byte ", layout_.begin + at * width,
          " is ", into[i], ", which a vocabulary of ", vocab_size_,
          " does not have; give its real size, or the real type of tokens"));
    }
    return absl::OkStatus();
  }

 private:
  const std::unique_ptr<base::ReadableFile> file_;
  const std::string path_;
  const Layout layout_;
  const std::int64_t vocab_size_;
};

// The other files that llm.c and its scripts write. All their magics are dates.
struct LlmcFile {
  std::int32_t magic;
  const char* what;
};
constexpr LlmcFile kOtherLlmcFiles[] = {
    {20240326, "a model of llm.c"},
    {20240327, "a debug state of llm.c"},
    {20240328, "a tokenizer of llm.c"},
    {20240522, "an evaluation of llm.c"},
    {20240527, "an optimizer state of llm.c"},
    {20240803, "a Llama-3 model of llm.c"},
};

// Returns whether `head` of a file is text: UTF-8 without control characters.
// Numbers of tokens have other bytes among the first few.
bool IsText(absl::string_view head) {
  constexpr std::size_t kCharacterBytesMax = 4;
  if (head.size() < kTextHeadBytesMin) return false;
  // The last character may be cut.
  while (head.size() > kCharacterBytesMax) {
    const Utf8Char c = Utf8At(head, 0);
    const bool is_text = c.code_point >= ' ' || c.code_point == '\n' ||
                         c.code_point == '\r' || c.code_point == '\t' ||
                         c.code_point == '\f';
    if (!is_text) return false;
    head.remove_prefix(c.bytes);
  }
  return true;
}

// Refuses files of other contents, which would be read as numbers, header and
// all. `magic` is the first i32.
absl::Status CheckIsBare(absl::string_view head, std::int32_t magic,
                         const std::string& path) {
  constexpr absl::string_view kNotTokens = "not a file of tokens";
  TROUPE_RETURN_IF_ERROR(base::RefuseForeignFormat(head, path, kNotTokens));
  for (const LlmcFile& file : kOtherLlmcFiles) {
    if (magic != file.magic) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", file.what, " (magic ", magic, "), ",
                     kNotTokens, "; give a file that its data scripts wrote"));
  }
  if (IsText(head)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": a text, ", kNotTokens,
                     "; read it as data of kind \"text\", or write its tokens "
                     "to a file first"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Layout> LayoutOfHeader(const std::array<std::int32_t, 3>& header,
                                      const KnownHeader& known,
                                      std::int64_t size,
                                      const std::string& path) {
  if (header[1] != known.version) {
    return absl::DataLossError(absl::StrCat(
        path, ": version ", header[1], " at byte 4; of files with the magic ",
        known.magic, " only version ", known.version,
        " is read; write it anew"));
  }
  const Layout layout = {kHeaderBytes, header[2], known.type};
  const std::int64_t bytes = kHeaderBytes + layout.count * BytesOf(known.type);
  if (layout.count < 0 || bytes != size) {
    return absl::DataLossError(absl::StrCat(
        path, ": the header declares ", layout.count, " tokens at byte 8, ",
        bytes, " bytes in all, but the file has ", size,
        "; replace it by a whole copy"));
  }
  return layout;
}

absl::StatusOr<Layout> LayoutOf(const base::ReadableFile& file,
                                const std::string& path, TokenType bare_type) {
  const std::int64_t size = file.size();
  std::string head(
      std::min<std::size_t>(base::kFormatHeadBytes, std::size_t(size)), '\0');
  TROUPE_RETURN_IF_ERROR(file.ReadAt(0, absl::MakeSpan(head)));
  std::array<std::int32_t, 3> header{};
  if (size >= kHeaderBytes) {
    std::memcpy(header.data(), head.data(), sizeof(header));
    for (const KnownHeader& known : kKnownHeaders) {
      if (header[0] == known.magic) {
        return LayoutOfHeader(header, known, size, path);
      }
    }
  }
  TROUPE_RETURN_IF_ERROR(CheckIsBare(head, header[0], path));
  const std::int64_t width = BytesOf(bare_type);
  if (size % width != 0) {
    return absl::DataLossError(absl::StrCat(
        path, ": ", size, " bytes are not a whole number of ", "tokens of ",
        width,
        " bytes; give a file of bare tokens, or the real type of tokens"));
  }
  return Layout{0, size / width, bare_type};
}

}  // namespace

absl::StatusOr<TokenSourcePtr> OpenTokenFile(base::FileSystem& files,
                                             const std::string& path,
                                             const TokenFileOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<base::ReadableFile> file,
                          files.Open(path));
  return OpenTokenFile(std::move(file), path, options);
}

absl::StatusOr<TokenSourcePtr> OpenTokenFile(
    std::unique_ptr<base::ReadableFile> file, const std::string& path,
    const TokenFileOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(const Layout layout,
                          LayoutOf(*file, path, options.bare_type));
  return TokenSourcePtr(std::make_shared<TokensInFile>(
      std::move(file), path, layout, options.vocab_size));
}

}  // namespace troupe::data
