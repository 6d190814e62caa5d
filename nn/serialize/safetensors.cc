#include "nn/serialize/safetensors.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/foreign_format.h"
#include "nn/serialize/other_formats.h"
#include "nn/serialize/safetensors_header.h"

namespace troupe::nn {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "tensors are written as they lie in memory");

constexpr std::int64_t kLengthBytes = sizeof(std::uint64_t);
constexpr std::size_t kAlignment = 8;

absl::Status CheckTensors(absl::Span<const NamedTensor> tensors) {
  std::set<absl::string_view> names;
  for (const NamedTensor& t : tensors) {
    if (t.name.empty() || t.name == "__metadata__") {
      return absl::InvalidArgumentError(
          absl::StrCat("a tensor may not be called \"", t.name,
                       "\" in a safetensors file; rename it"));
    }
    if (!names.insert(t.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two tensors are called \"", t.name, "\"; rename one"));
    }
    if (!t.tensor.defined() || t.tensor.is_meta()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor \"", t.name, "\" has no memory; save one with values"));
    }
  }
  return absl::OkStatus();
}

// Returns the rank of a dtype in a file. Large elements come first, so that
// each tensor is aligned; within a size, the order is that of Python's writer.
int Place(DType dtype) {
  switch (dtype) {
    case DType::kI64:
      return 0;
    case DType::kF64:
      return 1;
    case DType::kF32:
      return 2;
    case DType::kI32:
      return 3;
    case DType::kBF16:
      return 4;
    case DType::kF16:
      return 5;
    case DType::kU8:
      return 6;
  }
  return 7;
}

std::vector<const NamedTensor*> FileOrder(
    absl::Span<const NamedTensor> tensors) {
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& t : tensors) order.push_back(&t);
  std::sort(order.begin(), order.end(),
            [](const NamedTensor* a, const NamedTensor* b) {
              const int a_place = Place(a->tensor.dtype());
              const int b_place = Place(b->tensor.dtype());
              return a_place != b_place ? a_place < b_place : a->name < b->name;
            });
  return order;
}

// Returns the length and the padded header.
absl::StatusOr<std::string> Preamble(
    const std::vector<const NamedTensor*>& order,
    const SafetensorsMetadata& metadata) {
  SafetensorsHeader header;
  header.metadata = metadata;
  std::int64_t offset = 0;
  for (const NamedTensor* t : order) {
    const std::int64_t end =
        offset + static_cast<std::int64_t>(t->tensor.bytes());
    header.entries.push_back(
        {t->name, t->tensor.dtype(), t->tensor.shape(), offset, end});
    offset = end;
  }
  TROUPE_ASSIGN_OR_RETURN(std::string json, FormatSafetensorsHeader(header));
  json.append((kAlignment - json.size() % kAlignment) % kAlignment, ' ');
  if (static_cast<std::int64_t>(json.size()) > kSafetensorsHeaderBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a safetensors header may have ", kSafetensorsHeaderBytesMax,
        " bytes, these tensors need ", json.size(), "; write several files"));
  }
  const std::uint64_t length = json.size();
  std::string preamble(sizeof(length), '\0');
  std::memcpy(&preamble[0], &length, sizeof(length));
  return preamble + json;
}

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

absl::Status WriteSafetensors(base::FileSystem& files, const std::string& path,
                              absl::Span<const NamedTensor> tensors,
                              const SafetensorsMetadata& metadata) {
  TROUPE_RETURN_IF_ERROR(CheckTensors(tensors));
  const std::vector<const NamedTensor*> order = FileOrder(tensors);
  TROUPE_ASSIGN_OR_RETURN(std::string preamble, Preamble(order, metadata));
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<base::WritableFile> file,
                          files.Create(path));
  TROUPE_RETURN_IF_ERROR(file->Append(preamble));
  for (const NamedTensor* t : order) {
    TROUPE_RETURN_IF_ERROR(file->Append(
        {static_cast<const char*>(t->tensor.raw()), t->tensor.bytes()}));
  }
  TROUPE_RETURN_IF_ERROR(file->Sync());
  return file->Close();
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
