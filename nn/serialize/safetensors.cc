#include "nn/serialize/safetensors.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/foreign_format.h"
#include "nn/serialize/other_formats.h"
#include "nn/serialize/safetensors_header.h"

namespace troupe::nn {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "tensors are read as they lie in memory");

constexpr std::int64_t kLengthBytes = sizeof(std::uint64_t);
// Returns the error for any damaged file, or for one of another format.
absl::Status Damaged(const std::string& path, const base::ReadableFile& file,
                     absl::string_view what) {
  constexpr std::int64_t kHeadBytes = base::kFormatHeadBytes;
  std::string head(std::min(file.size(), kHeadBytes), '\0');
  TROUPE_RETURN_IF_ERROR(file.ReadAt(0, absl::MakeSpan(head)));
  const std::string other = OtherFormat(head);
  if (!other.empty()) {
    return absl::DataLossError(absl::StrCat(path, " is ", other));
  }
  return absl::DataLossError(
      absl::StrCat(path, " is not a whole safetensors file: ", what,
                   "; restore it from a copy or use an earlier one"));
}

}  // namespace

absl::string_view SafetensorsDTypeName(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "F32";
    case DType::kF64:
      return "F64";
    case DType::kBF16:
      return "BF16";
    case DType::kF16:
      return "F16";
    case DType::kI32:
      return "I32";
    case DType::kI64:
      return "I64";
    case DType::kU8:
      return "U8";
  }
  return "?";
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(base::FileSystem& files,
                                                      const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<base::ReadableFile> file,
                          files.Open(path));
  const std::int64_t size = file->size();
  if (size < kLengthBytes) {
    return Damaged(path, *file, absl::StrCat("it has only ", size, " bytes"));
  }
  std::uint64_t header_bytes = 0;
  TROUPE_RETURN_IF_ERROR(
      file->ReadAt(0, {reinterpret_cast<char*>(&header_bytes), kLengthBytes}));
  if (header_bytes > static_cast<std::uint64_t>(kSafetensorsHeaderBytesMax) ||
      static_cast<std::int64_t>(header_bytes) > size - kLengthBytes) {
    return Damaged(path, *file,
                   absl::StrCat("its header should have ", header_bytes,
                                " bytes, the file has ", size));
  }
  std::string json(header_bytes, '\0');
  TROUPE_RETURN_IF_ERROR(file->ReadAt(kLengthBytes, absl::MakeSpan(json)));
  const std::int64_t data_begin =
      kLengthBytes + static_cast<std::int64_t>(header_bytes);
  absl::StatusOr<SafetensorsHeader> header =
      ParseSafetensorsHeader(json, size - data_begin);
  if (!header.ok()) return Damaged(path, *file, header.status().message());

  SafetensorsFile opened(path, std::move(file));
  opened.data_begin_ = data_begin;
  opened.entries_ = std::move(header->entries);
  opened.metadata_ = std::move(header->metadata);
  for (std::size_t i = 0; i < opened.entries_.size(); ++i) {
    opened.index_.emplace(opened.entries_[i].name, static_cast<int>(i));
  }
  return opened;
}

std::string SafetensorsEntry::ToString() const {
  return unreadable.empty() ? absl::StrCat(DTypeName(dtype), shape.ToString())
                            : unreadable;
}

const SafetensorsEntry* SafetensorsFile::Find(absl::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &entries_[found->second];
}

absl::Status SafetensorsFile::Read(absl::string_view name,
                                   const Tensor& into) const {
  const SafetensorsEntry* entry = Find(name);
  if (entry == nullptr) {
    return absl::NotFoundError(absl::StrCat(path_, " has no tensor \"", name,
                                            "\"; read one of entries()"));
  }
  if (!entry->Is(into.dtype(), into.shape())) {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": tensor \"", name, "\" is ", entry->ToString(),
                     ", ", DTypeName(into.dtype()), into.shape().ToString(),
                     " is wanted; use the model it was saved from"));
  }
  TROUPE_CHECK(!into.is_meta(), "a tensor to read into has memory");
  return file_->ReadAt(
      data_begin_ + entry->begin,
      absl::MakeSpan(static_cast<char*>(into.raw()), into.bytes()));
}

absl::StatusOr<Tensor> SafetensorsFile::Read(absl::string_view name,
                                             Allocator& allocator) const {
  const SafetensorsEntry* entry = Find(name);
  if (entry == nullptr) {
    return absl::NotFoundError(absl::StrCat(path_, " has no tensor \"", name,
                                            "\"; read one of entries()"));
  }
  if (!entry->unreadable.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": tensor \"", name, "\" is ", entry->ToString(),
                     ", which cannot be read; convert it"));
  }
  TROUPE_ASSIGN_OR_RETURN(
      Tensor tensor, Tensor::Create(entry->shape, entry->dtype, allocator));
  TROUPE_RETURN_IF_ERROR(Read(name, tensor));
  return tensor;
}

}  // namespace troupe::nn
