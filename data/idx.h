// IDX, the format of MNIST's files: arrays of bytes with up to four axes.
//
//   TROUPE_ASSIGN_OR_RETURN(IdxFile file,
//                           ReadIdx(files, "train-images-idx3-ubyte.gz"));
//   file.array.shape;    // [60000, 28, 28]
//   file.array.values;   // row-major, views file.bytes
//
// Layout, big-endian: 0, 0, type (8: unsigned byte), number of axes R; R
// extents of 4 bytes; the values. Source: Y. LeCun, "The MNIST database",
// section "The IDX file format". Errors name other element types.
//
// ParseIdx() is pure and accepts any bytes; errors name the file and the byte.

#ifndef DATA_IDX_H_
#define DATA_IDX_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/files/file_system.h"
#include "nn/tensor/shape.h"

namespace troupe::data {

constexpr int kIdxRankMax = 4;
// Limit on the bytes of one array, after inflating.
constexpr std::int64_t kIdxBytesMax = std::int64_t{1} << 30;

struct IdxArray {
  nn::Shape shape;                        // 1 to 4 axes
  absl::Span<const std::uint8_t> values;  // row-major, shape.numel() of them
};

// Parses `bytes`, a whole plain IDX file called `name`. The result views them.
//   kDataLoss:          wrong magic number, truncated, or bytes after the end.
//   kUnimplemented:     an element type other than unsigned byte.
//   kResourceExhausted: more than kIdxBytesMax.
absl::StatusOr<IdxArray> ParseIdx(absl::Span<const std::uint8_t> bytes,
                                  absl::string_view name);

// A file and a view of the array in it. Movable, since moving a vector keeps
// its bytes in place.
struct IdxFile {
  std::string path;
  std::vector<std::uint8_t> bytes;
  IdxArray array;

  IdxFile() = default;
  IdxFile(IdxFile&&) = default;
  IdxFile& operator=(IdxFile&&) = default;
};

// Parses bytes that may be compressed by gzip. Inflates at most the size that
// the array's header declares.
absl::StatusOr<IdxFile> ParseIdxFile(std::vector<std::uint8_t> bytes,
                                     const std::string& path);

// Reads and parses a file. Errors: also those of base::ReadBytes().
absl::StatusOr<IdxFile> ReadIdx(base::FileSystem& files,
                                const std::string& path);

}  // namespace troupe::data

#endif  // DATA_IDX_H_
