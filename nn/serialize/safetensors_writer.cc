#include <algorithm>
#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/fnv_hash.h"
#include "nn/serialize/safetensors.h"
#include "nn/serialize/safetensors_header.h"
#include "nn/serialize/tensor_parts.h"

namespace troupe::nn {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "tensors are written as they lie in memory");

constexpr std::size_t kAlignment = 8;

absl::Status CheckNames(absl::Span<const TensorPart> parts) {
  std::set<absl::string_view> names;
  for (const TensorPart& part : parts) {
    if (part.name.empty() || part.name == "__metadata__") {
      return absl::InvalidArgumentError(
          absl::StrCat("a tensor may not be called \"", part.name,
                       "\" in a safetensors file; rename it"));
    }
    if (!names.insert(part.name).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "two tensors are called \"", part.name, "\"; rename one"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckMemory(absl::Span<const TensorPart> parts) {
  for (const TensorPart& part : parts) {
    if (part.ranges.empty()) continue;
    if (!part.elements.defined() || part.elements.is_meta()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor \"", part.name, "\" has no memory; save one with values"));
    }
    for (const TensorRange& range : part.ranges) {
      if (range.whole >= 0 && range.part >= 0 && range.count >= 0 &&
          range.whole + range.count <= part.shape.numel() &&
          range.part + range.count <= part.elements.numel() &&
          part.elements.dtype() == part.dtype) {
        continue;
      }
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor \"", part.name, "\", ", DTypeName(part.dtype),
          part.shape.ToString(), ", has no elements [", range.whole, ", ",
          range.whole + range.count, ") from ", range.part, " on in ",
          DTypeName(part.elements.dtype()), part.elements.shape().ToString(),
          "; give ranges of both"));
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

std::int64_t BytesOf(const TensorPart& part) {
  return part.shape.numel() * static_cast<std::int64_t>(SizeOf(part.dtype));
}

// The places of tensors in a file.
struct Layout {
  std::vector<const TensorPart*> order;
  std::string preamble;  // the length of the header, and the padded header
  std::int64_t data_bytes = 0;

  std::int64_t file_bytes() const {
    return static_cast<std::int64_t>(preamble.size()) + data_bytes;
  }
};

absl::StatusOr<Layout> LayOut(absl::Span<const TensorPart> parts,
                              const SafetensorsMetadata& metadata) {
  TROUPE_RETURN_IF_ERROR(CheckNames(parts));
  Layout layout;
  for (const TensorPart& part : parts) layout.order.push_back(&part);
  std::sort(layout.order.begin(), layout.order.end(),
            [](const TensorPart* a, const TensorPart* b) {
              const int a_place = Place(a->dtype), b_place = Place(b->dtype);
              return a_place != b_place ? a_place < b_place : a->name < b->name;
            });
  SafetensorsHeader header;
  header.metadata = metadata;
  for (const TensorPart* part : layout.order) {
    const std::int64_t begin = layout.data_bytes;
    layout.data_bytes += BytesOf(*part);
    header.entries.push_back(
        {part->name, part->dtype, part->shape, begin, layout.data_bytes});
  }
  TROUPE_ASSIGN_OR_RETURN(std::string json, FormatSafetensorsHeader(header));
  json.append((kAlignment - json.size() % kAlignment) % kAlignment, ' ');
  if (static_cast<std::int64_t>(json.size()) > kSafetensorsHeaderBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a safetensors header may have ", kSafetensorsHeaderBytesMax,
        " bytes, these tensors need ", json.size(), "; write several files"));
  }
  const std::uint64_t length = json.size();
  layout.preamble.resize(sizeof(length));
  std::memcpy(&layout.preamble[0], &length, sizeof(length));
  layout.preamble += json;
  return layout;
}

// Writes the ranges of a part whose tensor begins at byte `begin` of the file.
// Returns the number of bytes.
absl::StatusOr<std::int64_t> WriteRanges(const TensorPart& part,
                                         std::int64_t begin,
                                         base::SharedFile& file) {
  const auto size = static_cast<std::int64_t>(SizeOf(part.dtype));
  std::int64_t written = 0;
  for (const TensorRange& range : part.ranges) {
    if (range.count == 0) continue;
    const char* const from =
        static_cast<const char*>(part.elements.raw()) + range.part * size;
    const std::int64_t bytes = range.count * size;
    TROUPE_RETURN_IF_ERROR(file.WriteAt(
        begin + range.whole * size, {from, static_cast<std::size_t>(bytes)}));
    written += bytes;
  }
  return written;
}

}  // namespace

absl::Status WriteSafetensors(base::FileSystem& files, const std::string& path,
                              absl::Span<const NamedTensor> tensors,
                              const SafetensorsMetadata& metadata) {
  std::vector<TensorPart> wholes;
  for (const NamedTensor& t : tensors) {
    wholes.emplace_back();
    wholes.back().name = t.name;
    wholes.back().elements = t.tensor;
    wholes.back().ranges.resize(1);
    if (!t.tensor.defined()) continue;
    wholes.back().dtype = t.tensor.dtype();
    wholes.back().shape = t.tensor.shape();
  }
  TROUPE_RETURN_IF_ERROR(CheckNames(wholes));
  TROUPE_RETURN_IF_ERROR(CheckMemory(wholes));
  TROUPE_ASSIGN_OR_RETURN(const Layout layout, LayOut(wholes, metadata));
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<base::WritableFile> file,
                          files.Create(path));
  TROUPE_RETURN_IF_ERROR(file->Append(layout.preamble));
  for (const TensorPart* t : layout.order) {
    TROUPE_RETURN_IF_ERROR(
        file->Append({static_cast<const char*>(t->elements.raw()),
                      static_cast<std::size_t>(BytesOf(*t))}));
  }
  TROUPE_RETURN_IF_ERROR(file->Sync());
  return file->Close();
}

absl::StatusOr<PartsWritten> WriteTensorParts(
    base::FileSystem& files, const std::string& path,
    absl::Span<const TensorPart> parts, const SafetensorsMetadata& metadata,
    bool is_first) {
  TROUPE_ASSIGN_OR_RETURN(const Layout layout, LayOut(parts, metadata));
  TROUPE_RETURN_IF_ERROR(CheckMemory(parts));
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<base::SharedFile> file,
                          files.OpenToShare(path, layout.file_bytes()));
  if (is_first) TROUPE_RETURN_IF_ERROR(file->WriteAt(0, layout.preamble));
  PartsWritten written;
  base::FnvHash hash;
  hash.AddBlock(layout.preamble.data(), layout.preamble.size());
  written.layout = hash.value();
  written.data_bytes = layout.data_bytes;
  auto begin = static_cast<std::int64_t>(layout.preamble.size());
  for (const TensorPart* part : layout.order) {
    TROUPE_ASSIGN_OR_RETURN(const std::int64_t bytes,
                            WriteRanges(*part, begin, *file));
    written.bytes += bytes;
    begin += BytesOf(*part);
  }
  TROUPE_RETURN_IF_ERROR(file->Sync());
  TROUPE_RETURN_IF_ERROR(file->Close());
  return written;
}

}  // namespace troupe::nn
