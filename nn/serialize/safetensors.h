// Reads and writes the files of Python's `safetensors`.
//
//   base::PosixFileSystem files;
//   std::vector<NamedTensor> tensors = {{"fc.weight", w}, {"fc.bias", b}};
//   absl::Status s = WriteSafetensors(files, "model.safetensors", tensors,
//                                     {{"format", "pt"}});
//
//   TROUPE_ASSIGN_OR_RETURN(SafetensorsFile file,
//                           SafetensorsFile::Open(files, "model.safetensors"));
//   for (const SafetensorsEntry& e : file.entries()) Show(e.name, e.shape);
//   absl::Status r = file.Read("fc.weight", w);     // w: f32[10, 84], say
//
// The format (huggingface/safetensors, "Format"): 8 bytes, the length of the
// header, little-endian; the header, a JSON object
//     {"__metadata__": {"format": "pt"},
//      "fc.weight": {"dtype": "F32", "shape": [10, 84],
//                    "data_offsets": [begin, end]}, ...}
// padded with spaces; then the data, little-endian, in C order, without gaps.
//
// The writer orders tensors by dtype, largest elements first, then by name, and
// pads the header to 8 bytes: each tensor is aligned, and equal tensors give
// equal files in whatever order they are passed, byte for byte those of
// Python's writer.
//
// The reader does not trust the file: sizes, names and offsets are checked
// before memory for data is allocated. It reads the dtypes F32 F64 BF16 F16 I32
// I64 U8 and up to Shape::kMaxRank axes. Entries of the format's other dtypes,
// or of more axes, are only measured and listed (SafetensorsEntry::unreadable).
//
// Tensors are in host memory. Cost: one pass over the data, no copy. Threads:
// any number of threads may read from one SafetensorsFile.

#ifndef NN_SERIALIZE_SAFETENSORS_H_
#define NN_SERIALIZE_SAFETENSORS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/files/file_system.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn {

inline constexpr std::int64_t kSafetensorsHeaderBytesMax = 100'000'000;

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

using SafetensorsMetadata = std::map<std::string, std::string>;

// Writes, syncs and closes `path`.
//   kInvalidArgument: a name twice, empty, not UTF-8, or "__metadata__"; a
//                     tensor without memory. Nothing was written.
//   other:            from the file system; the file is incomplete.
absl::Status WriteSafetensors(base::FileSystem& files, const std::string& path,
                              absl::Span<const NamedTensor> tensors,
                              const SafetensorsMetadata& metadata);

// One tensor of a file.
struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  std::int64_t begin = 0;  // bytes from the start of the data
  std::int64_t end = 0;
  // Dtype and shape, "BOOL[1, 1, 8, 8]", of an entry that no Tensor can hold;
  // `dtype` and `shape` then mean nothing. Empty: the entry can be read.
  std::string unreadable = {};

  // "f32[10, 84]"
  std::string ToString() const;
  // Whether the entry can be read into a tensor of this dtype and shape.
  bool Is(DType wanted_dtype, const Shape& wanted_shape) const {
    return unreadable.empty() && dtype == wanted_dtype && shape == wanted_shape;
  }
};

class SafetensorsFile {
 public:
  // Reads and checks the header. Every error names `path`.
  //   kDataLoss: the file is damaged, or not a safetensors file; says where, or
  //     what it is (other_formats.h).
  static absl::StatusOr<SafetensorsFile> Open(base::FileSystem& files,
                                              const std::string& path);

  const std::string& path() const { return path_; }
  // Entries in the order of the data.
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }
  const SafetensorsMetadata& metadata() const { return metadata_; }
  // Returns null if there is no such tensor.
  const SafetensorsEntry* Find(absl::string_view name) const;

  // Fills `into` with the tensor `name`.
  //   kNotFound:        no such tensor.
  //   kInvalidArgument: its dtype or shape differs from that of `into`, or it
  //                     is unreadable.
  absl::Status Read(absl::string_view name, const Tensor& into) const;
  // The same, into new memory.
  absl::StatusOr<Tensor> Read(absl::string_view name,
                              Allocator& allocator) const;

 private:
  SafetensorsFile(std::string path, std::unique_ptr<base::ReadableFile> file)
      : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  std::unique_ptr<base::ReadableFile> file_;
  std::int64_t data_begin_ = 0;  // bytes from the start of the file
  std::vector<SafetensorsEntry> entries_;
  std::map<std::string, int, std::less<>> index_;
  SafetensorsMetadata metadata_;
};

// Returns the format's name of a dtype: "F32", "BF16", ...
absl::string_view SafetensorsDTypeName(DType dtype);

}  // namespace troupe::nn

#endif  // NN_SERIALIZE_SAFETENSORS_H_
