#include "nn/serialize/weight_file.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "nn/serialize/float_conversion.h"
#include "nn/serialize/other_formats.h"
#include "nn/serialize/shard_index.h"
#include "nn/serialize/wrapped_names.h"
#include "nn/tensor/caching_allocator.h"

namespace troupe::nn {
namespace {

// Limit on the names of one kind that an error lists.
constexpr std::size_t kNamesShownMax = 20;

constexpr absl::string_view kSingleName = "model.safetensors";
constexpr absl::string_view kIndexEnd = ".safetensors.index.json";
constexpr absl::string_view kIndexName = "model.safetensors.index.json";

// Layers that Hugging Face's GPT-2 stores as Conv1D.
constexpr absl::string_view kConv1d[] = {
    "attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight",
    "mlp.c_proj.weight"};

// An untied head of GPT-2 that the file lacks begins with the values of the
// token table, to which it is tied elsewhere.
constexpr absl::string_view kHead = "lm_head.weight";
constexpr absl::string_view kTokens = "wte.weight";

bool EndsWithAny(absl::string_view name,
                 absl::Span<const absl::string_view> suffixes) {
  return std::any_of(
      suffixes.begin(), suffixes.end(),
      [&](absl::string_view suffix) { return absl::EndsWith(name, suffix); });
}

// Whether a model computes the same without this tensor.
bool IsOptional(absl::string_view name) {
  return EndsWithAny(
      name, {".attn.bias", ".attn.masked_bias", "num_batches_tracked"});
}

std::string Listed(const std::vector<std::string>& names) {
  const std::size_t shown = std::min(names.size(), kNamesShownMax);
  std::string list = absl::StrJoin(names.begin(), names.begin() + shown, ", ");
  if (names.size() > shown) {
    absl::StrAppend(&list, " and ", names.size() - shown, " more");
  }
  return list;
}

Shape Reversed(const Shape& shape) { return {shape[1], shape[0]}; }

std::vector<absl::string_view> NamesOf(const Parameter& parameter) {
  std::vector<absl::string_view> names = {parameter.name};
  names.insert(names.end(), parameter.other_names.begin(),
               parameter.other_names.end());
  return names;
}

// Returns the error for an index that cannot be used, or is another file.
absl::Status Unusable(const std::string& path, absl::string_view text,
                      absl::string_view why) {
  const std::string other = OtherFormat(text);
  return absl::DataLossError(other.empty()
                                 ? absl::StrCat(path, " cannot be used: ", why,
                                                "; restore it from a copy")
                                 : absl::StrCat(path, " is ", other));
}

// Returns the error for a folder without weights; names what it has instead.
absl::Status NoWeightsIn(base::FileSystem& files, const std::string& folder) {
  const std::string what =
      absl::StrCat(folder, " has no ", kSingleName, ", nor a ", kIndexName);
  for (absl::string_view name :
       {"pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    if (!files.Exists(base::JoinPath(folder, name))) continue;
    return absl::NotFoundError(absl::StrCat(
        what, ", but a ", name,
        ", a file of torch.save; convert it in Python: from_pretrained(\"",
        folder, "\").save_pretrained(\"", folder, "\")"));
  }
  return absl::NotFoundError(
      absl::StrCat(what, "; name the file itself, or another folder"));
}

}  // namespace

std::string WeightDifferences::ToString() const {
  std::vector<std::string> parts;
  const auto add = [&](absl::string_view is,
                       const std::vector<std::string>& names) {
    if (!names.empty()) parts.push_back(absl::StrCat(is, ": ", Listed(names)));
  };
  add("missing", missing);
  add("unexpected", unexpected);
  add("mismatched", mismatched);
  return absl::StrJoin(parts, "; ");
}

WeightFile::WeightFile(std::string path, std::vector<SafetensorsFile> files)
    : path_(std::move(path)), files_(std::move(files)) {
  for (const SafetensorsFile& file : files_) {
    for (const SafetensorsEntry& entry : file.entries()) {
      int wrappers = 0;
      for (absl::string_view name : NamesWithoutWrappers(entry.name)) {
        const Found found = {&file, &entry, wrappers++};
        Found& kept = found_.emplace(name, found).first->second;
        if (found.wrappers < kept.wrappers) kept = found;
      }
      if (absl::EndsWith(entry.name, kConv1d[0]) && entry.shape.rank() == 2 &&
          entry.shape[1] == 3 * entry.shape[0]) {
        has_conv1d_ = true;
      }
    }
  }
}

absl::StatusOr<WeightFile> WeightFile::Open(base::FileSystem& files,
                                            const std::string& path) {
  for (absl::string_view name : {kSingleName, kIndexName}) {
    const std::string in_folder = base::JoinPath(path, name);
    if (!files.Exists(in_folder)) continue;
    return name == kSingleName ? OpenSingle(files, in_folder)
                               : OpenIndex(files, in_folder);
  }
  if (absl::EndsWith(path, kIndexEnd)) return OpenIndex(files, path);
  if (files.List(path).ok()) return NoWeightsIn(files, path);
  return OpenSingle(files, path);
}

absl::StatusOr<WeightFile> WeightFile::OpenSingle(base::FileSystem& files,
                                                  const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(SafetensorsFile file,
                          SafetensorsFile::Open(files, path));
  std::vector<SafetensorsFile> opened;
  opened.push_back(std::move(file));
  return WeightFile(path, std::move(opened));
}

// Opens the files of an index. Each tensor of the index must be in its file.
absl::StatusOr<WeightFile> WeightFile::OpenIndex(base::FileSystem& files,
                                                 const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(
      const std::string text,
      base::ReadWholeFile(files, path, kShardIndexBytesMax));
  const absl::StatusOr<ShardIndex> index = ParseShardIndex(text);
  if (!index.ok()) return Unusable(path, text, index.status().message());
  const absl::StatusOr<std::vector<std::string>> names = FilesOf(*index);
  if (!names.ok()) return Unusable(path, text, names.status().message());
  const std::string folder(path, 0, path.rfind('/') + 1);
  std::vector<SafetensorsFile> opened;
  std::map<std::string, std::size_t> position;
  for (const std::string& name : *names) {
    TROUPE_ASSIGN_OR_RETURN(
        SafetensorsFile file,
        SafetensorsFile::Open(files, absl::StrCat(folder, name)));
    position[name] = opened.size();
    opened.push_back(std::move(file));
  }
  for (const auto& [tensor, name] : index->file_of) {
    if (opened[position[name]].Find(tensor) != nullptr) continue;
    return Unusable(path, text,
                    absl::StrCat(name, " has no tensor \"", tensor, "\""));
  }
  return WeightFile(path, std::move(opened));
}

const WeightFile::Found* WeightFile::FindOne(absl::string_view name) const {
  const auto found = found_.find(name);
  return found == found_.end() ? nullptr : &found->second;
}

const WeightFile::Found* WeightFile::Find(Names names) const {
  for (absl::string_view name : names) {
    if (const Found* const found = FindOne(name)) return found;
  }
  return names.size() == 1 && names[0] == kHead ? Find({kTokens}) : nullptr;
}

bool WeightFile::IsTransposed(absl::string_view name) const {
  return has_conv1d_ && EndsWithAny(name, kConv1d);
}

std::string WeightFile::Mismatch(const SafetensorsEntry& entry,
                                 const TensorSpec& wanted) const {
  const bool transposed = IsTransposed(entry.name) && entry.shape.rank() == 2;
  const Shape shape = transposed ? Reversed(entry.shape) : entry.shape;
  const bool floats = IsFloating(entry.dtype) && IsFloating(wanted.dtype);
  if (entry.unreadable.empty() && shape == wanted.shape &&
      (floats || entry.dtype == wanted.dtype)) {
    return "";
  }
  const std::string is = entry.unreadable.empty()
                             ? TensorSpec{shape, entry.dtype}.ToString()
                             : entry.unreadable;
  return absl::StrCat(entry.name, " is ", is, ", not ", wanted.ToString());
}

WeightDifferences WeightFile::Compare(Module& model) const {
  // Both before the first view of a name: each writes all names anew.
  const std::vector<Parameter*> parameters = model.Parameters();
  const std::vector<Buffer*> buffers = model.Buffers();
  std::vector<WantedWeight> wanted;
  for (const Parameter* p : parameters) {
    wanted.push_back({NamesOf(*p), {p->shape, p->dtype}});
  }
  for (const Buffer* b : buffers) {
    wanted.push_back({{absl::string_view(b->name)}, {b->shape, b->dtype}});
  }
  return Compare(wanted);
}

WeightDifferences WeightFile::Compare(
    absl::Span<const WantedWeight> wanted) const {
  WeightDifferences differences;
  absl::flat_hash_set<absl::string_view> wanted_names;
  for (const WantedWeight& weight : wanted) {
    wanted_names.insert(weight.names.begin(), weight.names.end());
  }
  absl::flat_hash_set<const SafetensorsEntry*> known;
  for (const WantedWeight& weight : wanted) {
    for (absl::string_view name : weight.names) {
      if (const Found* const one = FindOne(name)) known.insert(one->entry);
    }
    const Found* const found = Find(weight.names);
    // "model.0.weight" is no wrapped "0.weight" if it is wanted as well.
    const bool is_anothers = found != nullptr && found->wrappers > 0 &&
                             wanted_names.contains(found->entry->name);
    if (found == nullptr || is_anothers) {
      if (!IsOptional(weight.names[0])) {
        differences.missing.emplace_back(weight.names[0]);
      }
      continue;
    }
    std::string mismatch = Mismatch(*found->entry, weight.spec);
    if (!mismatch.empty()) {
      differences.mismatched.push_back(std::move(mismatch));
    }
  }
  for (const SafetensorsFile& file : files_) {
    for (const SafetensorsEntry& entry : file.entries()) {
      if (known.contains(&entry) || IsOptional(entry.name)) continue;
      differences.unexpected.push_back(entry.name);
    }
  }
  return differences;
}

absl::Status WeightFile::CheckStrict(Module& model) const {
  const WeightDifferences differences = Compare(model);
  if (!differences.any()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      path(), " has the weights of another model; ", differences.ToString()));
}

bool WeightFile::HasAny(Names names, const TensorSpec& wanted) const {
  const Found* const found = Find(names);
  return found != nullptr && Mismatch(*found->entry, wanted).empty();
}

bool WeightFile::Has(const Parameter& parameter) const {
  return HasAny(NamesOf(parameter), {parameter.shape, parameter.dtype});
}

bool WeightFile::Has(const Buffer& buffer) const {
  return HasAny({absl::string_view(buffer.name)}, {buffer.shape, buffer.dtype});
}

absl::StatusOr<bool> WeightFile::Read(const Parameter& parameter,
                                      const Tensor& into) const {
  return ReadAny(NamesOf(parameter), into);
}

absl::StatusOr<bool> WeightFile::Read(const Buffer& buffer,
                                      const Tensor& into) const {
  return ReadAny({absl::string_view(buffer.name)}, into);
}

absl::StatusOr<bool> WeightFile::Read(const WantedWeight& wanted,
                                      const Tensor& into) const {
  return ReadAny(wanted.names, into);
}

absl::StatusOr<bool> WeightFile::ReadAny(Names names,
                                         const Tensor& into) const {
  if (!HasAny(names, {into.shape(), into.dtype()})) return false;
  const auto& [file, entry, wrappers] = *Find(names);
  const bool transpose = IsTransposed(entry->name);
  if (entry->dtype == into.dtype() && !transpose) {
    TROUPE_RETURN_IF_ERROR(file->Read(entry->name, into));
    return true;
  }
  CachingAllocator memory;
  TROUPE_ASSIGN_OR_RETURN(const Tensor read, file->Read(entry->name, memory));
  ConvertInto(read, transpose, into);
  return true;
}

absl::StatusOr<std::vector<NamedTensor>> AsTransformersGpt2(
    absl::Span<const NamedTensor> tensors, Allocator& allocator) {
  std::vector<NamedTensor> renamed;
  bool is_gpt2 = false;
  for (const NamedTensor& t : tensors) {
    NamedTensor as = t;
    if (!absl::StartsWith(t.name, "lm_head.")) {
      as.name = absl::StrCat("transformer.", t.name);
    }
    if (EndsWithAny(t.name, kConv1d) && t.tensor.shape().rank() == 2) {
      is_gpt2 = true;
      TROUPE_ASSIGN_OR_RETURN(as.tensor,
                              Tensor::Create(Reversed(t.tensor.shape()),
                                             t.tensor.dtype(), allocator));
      ConvertInto(t.tensor, /*transpose=*/true, as.tensor);
    }
    renamed.push_back(std::move(as));
  }
  if (is_gpt2) return renamed;
  return absl::InvalidArgumentError(
      "these are not the weights of a GPT-2: there must be an "
      "\"attn.c_attn.weight\"");
}

absl::StatusOr<Tensor> ConvertFloats(const Tensor& tensor, DType dtype,
                                     Allocator& allocator) {
  if (!IsFloating(tensor.dtype()) || tensor.dtype() == dtype) return tensor;
  TROUPE_ASSIGN_OR_RETURN(Tensor converted,
                          Tensor::Create(tensor.shape(), dtype, allocator));
  ConvertInto(tensor, /*transpose=*/false, converted);
  return converted;
}

}  // namespace troupe::nn
