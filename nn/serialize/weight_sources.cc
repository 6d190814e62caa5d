#include "nn/serialize/weight_sources.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/foreign_format.h"
#include "nn/serialize/llmc_file.h"
#include "nn/serialize/other_formats.h"
#include "nn/serialize/safetensors.h"
#include "nn/serialize/shard_index.h"
#include "nn/serialize/torch/torch_file.h"

namespace troupe::nn {
namespace {

constexpr absl::string_view kIndexEnd = ".index.json";
constexpr absl::string_view kNamesInFolder[] = {
    "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
    "pytorch_model.bin.index.json"};

class SafetensorsSource : public TensorSource {
 public:
  explicit SafetensorsSource(SafetensorsFile file) : file_(std::move(file)) {
    for (const SafetensorsEntry& e : file_.entries()) {
      tensors_.push_back({e.name, e.dtype, e.shape, e.unreadable});
    }
  }
  const std::vector<StoredTensor>& tensors() const override { return tensors_; }
  absl::Status Read(std::size_t index, const Tensor& into) const override {
    return file_.Read(tensors_[index].name, into);
  }

 private:
  const SafetensorsFile file_;
  std::vector<StoredTensor> tensors_;
};

// Returns the error for an index that cannot be used, or is another file.
absl::Status Unusable(const std::string& path, absl::string_view text,
                      absl::string_view why) {
  const std::string other = OtherFormat(text);
  return absl::DataLossError(other.empty()
                                 ? absl::StrCat(path, " cannot be used: ", why,
                                                "; restore it from a copy")
                                 : absl::StrCat(path, " is ", other));
}

absl::StatusOr<std::string> ReadHead(base::FileSystem& files,
                                     const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<base::ReadableFile> file,
                          files.Open(path));
  constexpr std::int64_t kHeadBytes = base::kFormatHeadBytes;
  std::string head(std::min(file->size(), kHeadBytes), '\0');
  TROUPE_RETURN_IF_ERROR(file->ReadAt(0, absl::MakeSpan(head)));
  return head;
}

// Whether the name says that a file is of torch.save, and the first byte that
// it is a pickle of protocol 0: a name, or a mark.
bool IsTextPickle(absl::string_view path, absl::string_view head) {
  const bool named =
      absl::EndsWith(path, ".pt") || absl::EndsWith(path, ".pth") ||
      absl::EndsWith(path, ".ckpt") || absl::EndsWith(path, ".bin") ||
      absl::EndsWith(path, ".pkl");
  return named && (absl::StartsWith(head, "c") || absl::StartsWith(head, "("));
}

absl::StatusOr<std::unique_ptr<const TensorSource>> OpenSource(
    base::FileSystem& files, const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(const std::string head, ReadHead(files, path));
  // The length of a safetensors header may look like the mark of a pickle.
  const auto format = base::RecogniseFormat(head);
  const bool is_safetensors =
      format.has_value() && format->contents == base::Contents::kSafetensors;
  if (!is_safetensors && IsLlmcFile(head)) return OpenLlmcFile(files, path);
  if (!is_safetensors && (MayBeTorchFile(head) || IsTextPickle(path, head))) {
    return OpenTorchFile(files, path);
  }
  TROUPE_ASSIGN_OR_RETURN(SafetensorsFile file,
                          SafetensorsFile::Open(files, path));
  return std::make_unique<SafetensorsSource>(std::move(file));
}

absl::StatusOr<WeightSources> OpenSingle(base::FileSystem& files,
                                         const std::string& path) {
  WeightSources opened;
  opened.path = path;
  TROUPE_ASSIGN_OR_RETURN(opened.sources.emplace_back(),
                          OpenSource(files, path));
  return opened;
}

// Opens the files of an index. Each tensor of the index must be in its file.
absl::StatusOr<WeightSources> OpenIndex(base::FileSystem& files,
                                        const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(
      const std::string text,
      base::ReadWholeFile(files, path, kShardIndexBytesMax));
  const absl::StatusOr<ShardIndex> index = ParseShardIndex(text);
  if (!index.ok()) return Unusable(path, text, index.status().message());
  const absl::StatusOr<std::vector<std::string>> names = FilesOf(*index);
  if (!names.ok()) return Unusable(path, text, names.status().message());
  const std::string folder(path, 0, path.rfind('/') + 1);
  WeightSources opened;
  opened.path = path;
  std::map<std::string, absl::flat_hash_set<absl::string_view>> tensors_of;
  for (const std::string& name : *names) {
    TROUPE_ASSIGN_OR_RETURN(opened.sources.emplace_back(),
                            OpenSource(files, absl::StrCat(folder, name)));
    for (const StoredTensor& tensor : opened.sources.back()->tensors()) {
      tensors_of[name].insert(tensor.name);
    }
  }
  for (const auto& [tensor, name] : index->file_of) {
    if (tensors_of[name].contains(tensor)) continue;
    return Unusable(path, text,
                    absl::StrCat(name, " has no tensor \"", tensor, "\""));
  }
  return opened;
}

}  // namespace

absl::StatusOr<WeightSources> OpenWeightSources(base::FileSystem& files,
                                                const std::string& path) {
  for (absl::string_view name : kNamesInFolder) {
    const std::string in_folder = base::JoinPath(path, name);
    if (!files.Exists(in_folder)) continue;
    return absl::EndsWith(name, kIndexEnd) ? OpenIndex(files, in_folder)
                                           : OpenSingle(files, in_folder);
  }
  if (absl::EndsWith(path, kIndexEnd)) return OpenIndex(files, path);
  if (files.List(path).ok()) {
    return absl::NotFoundError(
        absl::StrCat(path, " has no ", absl::StrJoin(kNamesInFolder, ", no "),
                     "; name the file itself, or another folder"));
  }
  return OpenSingle(files, path);
}

}  // namespace troupe::nn
