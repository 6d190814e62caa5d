#include "data/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::data {
namespace {

constexpr std::int64_t kChunkBytes = 1 << 16;

// State of zlib, and the bytes that it reads.
class Inflater {
 public:
  Inflater(absl::Span<const std::uint8_t> bytes, absl::string_view name)
      : bytes_(bytes), name_(name) {
    // 15 bits of window, + 16: a gzip header and nothing else.
    TROUPE_CHECK(inflateInit2(&stream_, 15 + 16) == Z_OK,
                 "zlib has memory for its window");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  bool done() const { return done_; }

  // Inflates into `out` until it is full or the text has ended. Returns the
  // number of bytes.
  absl::StatusOr<std::size_t> Read(absl::Span<std::uint8_t> out) {
    std::size_t count = 0;
    while (!done_ && count < out.size()) {
      const std::size_t in =
          std::min<std::size_t>(bytes_.size() - read_, kChunkBytes);
      const std::size_t room =
          std::min<std::size_t>(out.size() - count, kChunkBytes);
      stream_.next_in = const_cast<Bytef*>(bytes_.data() + read_);
      stream_.avail_in = static_cast<uInt>(in);
      stream_.next_out = out.data() + count;
      stream_.avail_out = static_cast<uInt>(room);
      const int result = inflate(&stream_, Z_NO_FLUSH);
      const std::size_t taken = in - stream_.avail_in;
      const std::size_t given = room - stream_.avail_out;
      read_ += taken;
      count += given;
      if (result == Z_STREAM_END) {
        TROUPE_RETURN_IF_ERROR(EndMember());
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        return Error(stream_.msg != nullptr ? stream_.msg : "not gzip");
      } else if (taken == 0 && given == 0) {
        return Error("the compressed data is cut off");
      }
    }
    return count;
  }

 private:
  // Called after a member: another one must begin, or the bytes end.
  absl::Status EndMember() {
    if (read_ == bytes_.size()) {
      done_ = true;
      return absl::OkStatus();
    }
    if (!IsGzip(bytes_.subspan(read_))) {
      return Error("bytes that are not gzip follow the compressed data");
    }
    TROUPE_CHECK(inflateReset(&stream_) == Z_OK, "zlib can be used again");
    return absl::OkStatus();
  }

  absl::Status Error(absl::string_view what) const {
    return absl::DataLossError(absl::StrCat(name_, ": corrupt gzip at byte ",
                                            read_, ": ", what,
                                            "; replace it by a whole copy"));
  }

  const absl::Span<const std::uint8_t> bytes_;
  const std::string name_;
  z_stream stream_{};
  std::size_t read_ = 0;
  bool done_ = false;
};

// Returns at most `count` bytes from `inflater`, read in steps that double, so
// that memory is proportional to the result.
absl::StatusOr<std::vector<std::uint8_t>> ReadUpTo(Inflater& inflater,
                                                   std::int64_t count) {
  std::vector<std::uint8_t> out;
  while (!inflater.done() && static_cast<std::int64_t>(out.size()) < count) {
    const std::int64_t had = static_cast<std::int64_t>(out.size());
    out.resize(std::min(count, std::max(2 * had, kChunkBytes)));
    TROUPE_ASSIGN_OR_RETURN(const std::size_t got,
                            inflater.Read(absl::MakeSpan(out).subspan(had)));
    out.resize(had + got);
  }
  return out;
}

}  // namespace

bool IsGzip(absl::Span<const std::uint8_t> bytes) {
  return bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

absl::StatusOr<std::vector<std::uint8_t>> Gunzip(
    absl::Span<const std::uint8_t> bytes, absl::string_view name,
    std::int64_t bytes_max) {
  Inflater inflater(bytes, name);
  TROUPE_ASSIGN_OR_RETURN(std::vector<std::uint8_t> out,
                          ReadUpTo(inflater, bytes_max));
  // Reads one more byte: if there is none, the checksum has been verified; else
  // the text is too long.
  std::uint8_t extra;
  TROUPE_ASSIGN_OR_RETURN(const std::size_t more,
                          inflater.Read(absl::MakeSpan(&extra, 1)));
  if (more > 0) {
    return absl::ResourceExhaustedError(absl::StrCat(
        name, ": inflates to more than the ", bytes_max,
        " bytes that it may hold; replace it by a file whose header is right"));
  }
  return out;
}

absl::StatusOr<std::vector<std::uint8_t>> GunzipPrefix(
    absl::Span<const std::uint8_t> bytes, absl::string_view name,
    std::int64_t count) {
  Inflater inflater(bytes, name);
  return ReadUpTo(inflater, count);
}

}  // namespace troupe::data
