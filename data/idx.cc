#include "data/idx.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/foreign_format.h"
#include "data/gzip.h"

namespace troupe::data {
namespace {

constexpr std::int64_t kMagicBytes = 4;
constexpr std::int64_t kHeaderBytesMax = kMagicBytes + 4 * kIdxRankMax;
constexpr std::uint8_t kUnsignedByte = 0x08;

struct Header {
  nn::Shape shape;
  std::int64_t header_bytes = 0;
  std::int64_t total_bytes = 0;
};

absl::Status Damaged(absl::string_view name, absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat(name, ": ", what, "; replace it by a whole copy"));
}

std::string TypeName(std::uint8_t type) {
  switch (type) {
    case 0x09:
      return "signed byte";
    case 0x0b:
      return "short";
    case 0x0c:
      return "int";
    case 0x0d:
      return "float";
    case 0x0e:
      return "double";
    default:
      return "unknown";
  }
}

absl::Status CheckMagic(absl::Span<const std::uint8_t> bytes,
                        absl::string_view name) {
  TROUPE_RETURN_IF_ERROR(base::RefuseForeignFormat(
      absl::string_view(reinterpret_cast<const char*>(bytes.data()),
                        bytes.size()),
      name, "not an IDX file"));
  if (bytes.size() < kMagicBytes) {
    return Damaged(name, absl::StrCat("truncated at byte ", bytes.size(),
                                      " of the magic number"));
  }
  if (bytes[0] != 0 || bytes[1] != 0) {
    return absl::DataLossError(absl::StrCat(
        name,
        ": wrong magic number at byte 0: an IDX file begins with 0 0, "
        "this one with ",
        bytes[0], " ", bytes[1], "; give an IDX file"));
  }
  if (bytes[2] != kUnsignedByte) {
    return absl::UnimplementedError(absl::StrCat(
        name, ": element type ", bytes[2], " (", TypeName(bytes[2]),
        ") at byte 2, of which only 8 (unsigned byte) is read; convert it"));
  }
  if (bytes[3] < 1 || bytes[3] > kIdxRankMax) {
    return absl::DataLossError(
        absl::StrCat(name, ": ", bytes[3], " axes at byte 3; 1 to ",
                     kIdxRankMax, " are possible; give an IDX file"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Header> ParseHeader(absl::Span<const std::uint8_t> bytes,
                                   absl::string_view name) {
  TROUPE_RETURN_IF_ERROR(CheckMagic(bytes, name));
  const int rank = bytes[3];
  Header header;
  header.header_bytes = kMagicBytes + 4 * rank;
  if (static_cast<std::int64_t>(bytes.size()) < header.header_bytes) {
    return Damaged(
        name, absl::StrCat("truncated at byte ", bytes.size(),
                           " of a header of ", header.header_bytes, " bytes"));
  }
  std::array<std::int64_t, kIdxRankMax> dims{};
  std::int64_t count = 1;
  // Extents of 0 count as 1 here, so that they do not hide a huge one. The
  // product stays below 2^62, limit times extent.
  std::int64_t most = 1;
  for (int axis = 0; axis < rank; ++axis) {
    const std::uint8_t* b = bytes.data() + kMagicBytes + 4 * axis;
    dims[axis] = std::int64_t{b[0]} << 24 | b[1] << 16 | b[2] << 8 | b[3];
    count *= dims[axis];
    most *= std::max<std::int64_t>(dims[axis], 1);
    if (most > kIdxBytesMax) {
      return absl::ResourceExhaustedError(absl::StrCat(
          name, ": the extents up to byte ", kMagicBytes + 4 * axis + 4,
          " declare ", most, " values, more than the limit of ", kIdxBytesMax,
          "; give a smaller file"));
    }
  }
  header.shape = nn::Shape(
      absl::MakeConstSpan(dims.data(), static_cast<std::size_t>(rank)));
  header.total_bytes = header.header_bytes + count;
  return header;
}

// Inflates `bytes` of the file `name`, no more than its header declares.
absl::StatusOr<std::vector<std::uint8_t>> Inflate(
    absl::Span<const std::uint8_t> bytes, absl::string_view name) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> head,
                          GunzipPrefix(bytes, name, kHeaderBytesMax));
  TROUPE_ASSIGN_OR_RETURN(const Header header,
                          ParseHeader(head, absl::StrCat(name, " (inflated)")));
  return Gunzip(bytes, name, header.total_bytes);
}

}  // namespace

absl::StatusOr<IdxArray> ParseIdx(absl::Span<const std::uint8_t> bytes,
                                  absl::string_view name) {
  TROUPE_ASSIGN_OR_RETURN(const Header header, ParseHeader(bytes, name));
  const std::int64_t size = static_cast<std::int64_t>(bytes.size());
  if (size < header.total_bytes) {
    return Damaged(
        name, absl::StrCat("truncated at byte ", size, ": the header declares ",
                           header.shape.ToString(), ", ", header.total_bytes,
                           " bytes in all"));
  }
  if (size > header.total_bytes) {
    return Damaged(
        name,
        absl::StrCat(size - header.total_bytes, " bytes too many from byte ",
                     header.total_bytes, " on: the header declares ",
                     header.shape.ToString()));
  }
  IdxArray array;
  array.shape = header.shape;
  array.values = bytes.subspan(header.header_bytes);
  return array;
}

absl::StatusOr<IdxFile> ParseIdxFile(std::vector<std::uint8_t> bytes,
                                     const std::string& path) {
  IdxFile file;
  file.path = path;
  std::string name = path;
  if (IsGzip(bytes)) {
    TROUPE_ASSIGN_OR_RETURN(bytes, Inflate(bytes, path));
    absl::StrAppend(&name, " (inflated)");
  }
  file.bytes = std::move(bytes);
  TROUPE_ASSIGN_OR_RETURN(file.array, ParseIdx(file.bytes, name));
  return file;
}

absl::StatusOr<IdxFile> ReadIdx(base::FileSystem& files,
                                const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(
      std::vector<std::uint8_t> bytes,
      base::ReadBytes(files, path, kIdxBytesMax + kHeaderBytesMax));
  return ParseIdxFile(std::move(bytes), path);
}

}  // namespace troupe::data
