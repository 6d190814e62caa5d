#include "nn/serialize/torch/torch_file.h"

#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/field_error.h"
#include "nn/serialize/torch/torch_storages.h"

namespace troupe::nn {
namespace {

absl::Status OfFile(const std::string& path, const absl::Status& status) {
  std::string message = absl::StrCat(path, " ", status.message());
  if (absl::IsPermissionDenied(status)) {
    absl::StrAppend(&message,
                    "; save the state dict alone, torch.save("
                    "model.state_dict(), path), or as safetensors");
  } else if (!absl::StrContains(message, "; ")) {
    absl::StrAppend(&message, "; restore it from a copy or save it again");
  }
  return base::WithMessage(status, message);
}

// Returns the number of elements from the first to the last, one of which is at
// least there.
std::int64_t Span(const TorchTensor& tensor) {
  std::int64_t last = 0;
  for (int axis = 0; axis < tensor.stored.shape.rank(); ++axis) {
    last += (tensor.stored.shape[axis] - 1) * tensor.strides[axis];
  }
  return last + 1;
}

bool IsContiguous(const TorchTensor& tensor) {
  std::int64_t stride = 1;
  for (int axis = tensor.stored.shape.rank() - 1; axis >= 0; --axis) {
    const std::int64_t extent = tensor.stored.shape[axis];
    if (extent != 1 && tensor.strides[axis] != stride) return false;
    stride *= extent;
  }
  return true;
}

// Copies the elements of a strided view, in C order.
void Gather(const TorchTensor& tensor, const char* from, std::size_t item_bytes,
            char* to) {
  const Shape& shape = tensor.stored.shape;
  std::vector<std::int64_t> position(shape.rank(), 0);
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    std::memcpy(to, from + at * static_cast<std::int64_t>(item_bytes),
                item_bytes);
    to += item_bytes;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      at += tensor.strides[axis];
      if (++position[axis] < shape[axis]) break;
      at -= position[axis] * tensor.strides[axis];
      position[axis] = 0;
    }
  }
}

class TorchFile : public TensorSource {
 public:
  TorchFile(std::string path, TorchContents contents)
      : path_(std::move(path)), contents_(std::move(contents)) {
    for (const TorchTensor& tensor : contents_.tensors) {
      stored_.push_back(tensor.stored);
    }
  }

  const std::vector<StoredTensor>& tensors() const override { return stored_; }

  absl::Status Read(std::size_t index, const Tensor& into) const override {
    const TorchTensor& tensor = contents_.tensors[index];
    TROUPE_CHECK(tensor.stored.unreadable.empty() &&
                     into.dtype() == tensor.stored.dtype &&
                     into.shape() == tensor.stored.shape,
                 "a tensor is read as it is");
    if (into.numel() == 0) return absl::OkStatus();
    const absl::Status status = ReadElements(tensor, into);
    return status.ok() ? status : OfFile(path_, status);
  }

 private:
  absl::Status ReadElements(const TorchTensor& tensor,
                            const Tensor& into) const {
    const std::size_t item_bytes = SizeOf(tensor.stored.dtype);
    const std::int64_t offset = (tensor.storage.first_item + tensor.offset) *
                                static_cast<std::int64_t>(item_bytes);
    auto* const to = static_cast<char*>(into.raw());
    const std::string& key = tensor.storage.key;
    if (IsContiguous(tensor)) {
      return contents_.storages->ReadAt(key, offset, {to, into.bytes()});
    }
    std::string part(Span(tensor) * item_bytes, '\0');
    TROUPE_RETURN_IF_ERROR(
        contents_.storages->ReadAt(key, offset, absl::MakeSpan(part)));
    Gather(tensor, part.data(), item_bytes, to);
    return absl::OkStatus();
  }

  const std::string path_;
  const TorchContents contents_;
  std::vector<StoredTensor> stored_;
};

// Checks that the file has the bytes of each storage that will be read.
absl::Status CheckStorages(const TorchContents& contents) {
  for (const TorchTensor& tensor : contents.tensors) {
    if (!tensor.stored.unreadable.empty()) continue;
    const TorchStorage& storage = tensor.storage;
    TROUPE_ASSIGN_OR_RETURN(const std::int64_t bytes,
                            contents.storages->BytesOf(storage.key));
    if (storage.first_item + storage.items > bytes / storage.item_bytes) {
      return absl::DataLossError(
          absl::StrCat("is damaged: a storage of ", storage.items,
                       " elements has only ", bytes, " bytes"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool MayBeTorchFile(absl::string_view head) {
  // A pickle of protocol 2 and later begins with its number; one of a zip
  // archive with "PK".
  return absl::StartsWith(head, "PK\3\4") ||
         (head.size() > 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5);
}

absl::StatusOr<std::unique_ptr<TensorSource>> OpenTorchFile(
    base::FileSystem& files, const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<base::ReadableFile> file,
                          files.Open(path));
  absl::StatusOr<TorchContents> contents = OpenTorchContents(std::move(file));
  if (!contents.ok()) return OfFile(path, contents.status());
  const absl::Status checked = CheckStorages(*contents);
  if (!checked.ok()) return OfFile(path, checked);
  return std::make_unique<TorchFile>(path, *std::move(contents));
}

}  // namespace troupe::nn
