#include "nn/serialize/torch/torch_writer.h"

#include <zlib.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/check.h"
#include "nn/serialize/torch/zip_format.h"

namespace troupe::nn {
namespace {

constexpr std::int64_t kDataAlignment = 64;
// Version of the format that has fields of 64 bits.
constexpr std::uint16_t kZip64Version = 45;
constexpr std::uint32_t kZipNone32 = 0xffffffff;
// Kind of the extra field by which PyTorch pads headers.
constexpr std::uint16_t kPaddingField = 0x4246;
// 1 January 1980, the earliest date of the format.
constexpr std::uint32_t kZipDate = 0x00210000;
// Limit on the bytes of which zlib sums the checksum in one call.
constexpr std::size_t kChecksumBytesMax = std::size_t{1} << 30;

template <typename T>
void AppendNumber(std::string& to, T number) {
  to.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

std::uint32_t Checksum(absl::string_view bytes) {
  uLong sum = crc32(0, nullptr, 0);
  while (!bytes.empty()) {
    const absl::string_view part = bytes.substr(0, kChecksumBytesMax);
    sum = crc32(sum, reinterpret_cast<const Bytef*>(part.data()),
                static_cast<uInt>(part.size()));
    bytes.remove_prefix(part.size());
  }
  return static_cast<std::uint32_t>(sum);
}

// Appends stored entries to a file, then their directory.
class ZipWriter {
 public:
  explicit ZipWriter(base::WritableFile& file) : file_(file) {}

  absl::Status Add(absl::string_view name, absl::string_view bytes) {
    const std::uint32_t sum = Checksum(bytes);
    const std::int64_t size = static_cast<std::int64_t>(bytes.size());
    std::string sizes;
    AppendNumber<std::uint16_t>(sizes, kZip64Field);
    AppendNumber<std::uint16_t>(sizes, 16);
    AppendNumber<std::int64_t>(sizes, size);
    AppendNumber<std::int64_t>(sizes, size);
    constexpr std::int64_t kFieldHeadBytes = 4;
    const std::int64_t unpadded = at_ + kZipLocalHeaderBytes + name.size() +
                                  sizes.size() + kFieldHeadBytes;
    const std::int64_t padding =
        (kDataAlignment - unpadded % kDataAlignment) % kDataAlignment;
    AppendNumber<std::uint16_t>(sizes, kPaddingField);
    AppendNumber<std::uint16_t>(sizes, static_cast<std::uint16_t>(padding));
    sizes.append(padding, 'Z');

    std::string header;
    AppendNumber(header, kZipLocalHeaderMark);
    AppendCommon(header, sum, name.size(), sizes.size());
    absl::StrAppend(&header, name, sizes);

    AppendNumber(directory_, kZipDirectoryEntryMark);
    AppendNumber(directory_, kZip64Version);  // version of the writer
    AppendCommon(directory_, sum, name.size(), kDirectoryFieldBytes);
    AppendNumber<std::uint16_t>(directory_, 0);  // comment
    AppendNumber<std::uint16_t>(directory_, 0);  // disk
    AppendNumber<std::uint16_t>(directory_, 0);  // attributes
    AppendNumber<std::uint32_t>(directory_, 0);
    AppendNumber(directory_, kZipNone32);  // offset
    absl::StrAppend(&directory_, name);
    AppendNumber<std::uint16_t>(directory_, kZip64Field);
    AppendNumber<std::uint16_t>(directory_, kDirectoryFieldBytes - 4);
    AppendNumber<std::int64_t>(directory_, size);
    AppendNumber<std::int64_t>(directory_, size);
    AppendNumber<std::int64_t>(directory_, at_);
    ++entries_;
    TROUPE_RETURN_IF_ERROR(Append(header));
    return Append(bytes);
  }

  absl::Status Finish() {
    const std::int64_t begin = at_;
    const std::int64_t end64 = begin + directory_.size();
    std::string end = std::move(directory_);
    const std::int64_t size = static_cast<std::int64_t>(end.size());
    AppendNumber(end, kZipEnd64Mark);
    AppendNumber<std::int64_t>(end, kZipEnd64Bytes - 12);
    AppendNumber(end, kZip64Version);
    AppendNumber(end, kZip64Version);
    AppendNumber<std::uint32_t>(end, 0);  // disks
    AppendNumber<std::uint32_t>(end, 0);
    AppendNumber<std::int64_t>(end, entries_);
    AppendNumber<std::int64_t>(end, entries_);
    AppendNumber<std::int64_t>(end, size);
    AppendNumber<std::int64_t>(end, begin);
    AppendNumber(end, kZipLocator64Mark);
    AppendNumber<std::uint32_t>(end, 0);
    AppendNumber<std::int64_t>(end, end64);
    AppendNumber<std::uint32_t>(end, 1);  // disks
    AppendNumber(end, kZipEndMark);
    AppendNumber<std::uint32_t>(end, 0);
    AppendNumber(end, kZipNone32);  // entries, twice 16 bits
    AppendNumber(end, kZipNone32);
    AppendNumber(end, kZipNone32);
    AppendNumber<std::uint16_t>(end, 0);  // comment
    return Append(end);
  }

 private:
  static constexpr std::uint16_t kDirectoryFieldBytes = 28;

  // Appends the fields that both headers of an entry have.
  static void AppendCommon(std::string& to, std::uint32_t sum,
                           std::size_t name_bytes, std::size_t extra_bytes) {
    AppendNumber(to, kZip64Version);     // version for the reader
    AppendNumber<std::uint16_t>(to, 0);  // flags
    AppendNumber(to, kZipStored);
    AppendNumber(to, kZipDate);
    AppendNumber(to, sum);
    AppendNumber(to, kZipNone32);  // sizes
    AppendNumber(to, kZipNone32);
    AppendNumber(to, static_cast<std::uint16_t>(name_bytes));
    AppendNumber(to, static_cast<std::uint16_t>(extra_bytes));
  }

  absl::Status Append(absl::string_view bytes) {
    at_ += static_cast<std::int64_t>(bytes.size());
    return file_.Append(bytes);
  }

  base::WritableFile& file_;
  std::int64_t at_ = 0;
  std::int64_t entries_ = 0;
  std::string directory_;
};

absl::string_view StorageClass(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "FloatStorage";
    case DType::kF64:
      return "DoubleStorage";
    case DType::kBF16:
      return "BFloat16Storage";
    case DType::kF16:
      return "HalfStorage";
    case DType::kI32:
      return "IntStorage";
    case DType::kI64:
      return "LongStorage";
    case DType::kU8:
      return "ByteStorage";
  }
  return "";
}

void AppendText(std::string& pickle, absl::string_view text) {
  pickle.push_back('X');
  AppendNumber(pickle, static_cast<std::uint32_t>(text.size()));
  absl::StrAppend(&pickle, text);
}

void AppendInteger(std::string& pickle, std::int64_t number) {
  pickle.append("\x8a\x08");
  AppendNumber(pickle, number);
}

// Appends a tuple of extents, or of the strides that belong to them.
void AppendExtents(std::string& pickle, const Shape& shape, bool strides) {
  pickle.push_back('(');
  for (int axis = 0; axis < shape.rank(); ++axis) {
    std::int64_t stride = 1;
    for (int inner = axis + 1; inner < shape.rank(); ++inner) {
      stride *= shape[inner] > 0 ? shape[inner] : 1;
    }
    AppendInteger(pickle, strides ? stride : shape[axis]);
  }
  pickle.push_back('t');
}

// Returns the pickle of {name: _rebuild_tensor_v2(("storage", class, key,
// "cpu", elements), 0, extents, strides, False, OrderedDict()), ...}.
std::string PickleOf(absl::Span<const NamedTensor> tensors) {
  std::string pickle = "\x80\x02}(";
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i].tensor;
    AppendText(pickle, tensors[i].name);
    pickle.append("ctorch._utils\n_rebuild_tensor_v2\n((");
    AppendText(pickle, "storage");
    absl::StrAppend(&pickle, "ctorch\n", StorageClass(tensor.dtype()), "\n");
    AppendText(pickle, absl::StrCat(i));
    AppendText(pickle, "cpu");
    AppendInteger(pickle, tensor.numel());
    pickle.append("tQ");
    AppendInteger(pickle, 0);
    AppendExtents(pickle, tensor.shape(), /*strides=*/false);
    AppendExtents(pickle, tensor.shape(), /*strides=*/true);
    pickle.append(
        "\x89"
        "ccollections\nOrderedDict\n)RtR");
  }
  return pickle + "u.";
}

}  // namespace

absl::Status WriteTorchFile(base::FileSystem& files, const std::string& path,
                            absl::Span<const NamedTensor> tensors) {
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<base::WritableFile> file,
                          files.Create(path));
  ZipWriter zip(*file);
  TROUPE_RETURN_IF_ERROR(zip.Add("archive/data.pkl", PickleOf(tensors)));
  TROUPE_RETURN_IF_ERROR(zip.Add("archive/byteorder", "little"));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i].tensor;
    TROUPE_RETURN_IF_ERROR(
        zip.Add(absl::StrCat("archive/data/", i),
                {static_cast<const char*>(tensor.raw()), tensor.bytes()}));
  }
  TROUPE_RETURN_IF_ERROR(zip.Add("archive/version", "3\n"));
  TROUPE_RETURN_IF_ERROR(zip.Finish());
  TROUPE_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

}  // namespace troupe::nn
