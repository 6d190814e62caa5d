#include "nn/serialize/weight_file.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "nn/serialize/float_conversion.h"
#include "nn/serialize/name_styles.h"
#include "nn/serialize/nearest_names.h"
#include "nn/serialize/wrapped_names.h"
#include "nn/tensor/caching_allocator.h"

namespace troupe::nn {
namespace {

// Limit on the names of one kind that an error lists.
constexpr std::size_t kNamesShownMax = 20;

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

// Added to the wrappers of a name in another library's style, so that a tensor
// of the very name is preferred.
constexpr int kStyledRank = 2 * kWrappersMax;

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
  add("nearest names", nearest);
  return absl::StrJoin(parts, "; ");
}

WeightFile::WeightFile(WeightSources opened) : opened_(std::move(opened)) {
  for (const auto& source : opened_.sources) {
    for (std::size_t i = 0; i < source->tensors().size(); ++i) {
      const StoredTensor& tensor = source->tensors()[i];
      int wrappers = 0;
      for (absl::string_view name : NamesWithoutWrappers(tensor.name)) {
        AddFound({std::string(name)}, wrappers, {source.get(), i});
        if (const auto ours = OurName(name); ours.has_value()) {
          AddFound(*ours, kStyledRank + wrappers, {source.get(), i});
        }
        ++wrappers;
      }
      if (absl::EndsWith(tensor.name, kConv1d[0]) && tensor.shape.rank() == 2 &&
          tensor.shape[1] == 3 * tensor.shape[0]) {
        has_conv1d_ = true;
      }
    }
  }
  absl::erase_if(found_, [](const auto& entry) {
    const std::vector<Part>& parts = entry.second.parts;
    return std::any_of(parts.begin(), parts.end(),
                       [](const Part& part) { return part.source == nullptr; });
  });
}

void WeightFile::AddFound(const StyledName& name, int wrappers, Part part) {
  const auto [place, is_new] = found_.try_emplace(name.name);
  Found& found = place->second;
  const bool is_split = name.parts > 1;
  if (is_new || wrappers < found.wrappers) {
    found.parts.assign(name.parts, {});
    found.wrappers = wrappers;
  } else if (wrappers > found.wrappers || !is_split ||
             static_cast<int>(found.parts.size()) != name.parts) {
    return;
  }
  found.parts[name.part] = part;
}

absl::StatusOr<WeightFile> WeightFile::Open(base::FileSystem& files,
                                            const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(WeightSources opened, OpenWeightSources(files, path));
  return WeightFile(std::move(opened));
}

StoredTensor WeightFile::Found::Whole() const {
  StoredTensor whole = parts[0].tensor();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const StoredTensor& part = parts[i].tensor();
    if (!part.unreadable.empty() || part.dtype != whole.dtype ||
        part.shape != parts[0].tensor().shape || part.shape.rank() == 0) {
      whole.unreadable = "in parts that differ";
    }
  }
  if (parts.size() == 1 || !whole.unreadable.empty()) return whole;
  std::vector<std::int64_t> extents;
  for (int axis = 0; axis < whole.shape.rank(); ++axis) {
    extents.push_back(whole.shape[axis]);
  }
  extents[0] *= static_cast<std::int64_t>(parts.size());
  if (Shape::Fits(extents)) {
    whole.shape = Shape(extents);
  } else {
    whole.unreadable = "too large";
  }
  return whole;
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

std::optional<WeightMismatch> WeightFile::Mismatch(
    const Found& found, const TensorSpec& wanted) const {
  const StoredTensor entry = found.Whole();
  const bool transposed = IsTransposed(entry.name) && entry.shape.rank() == 2;
  const Shape shape = transposed ? Reversed(entry.shape) : entry.shape;
  const bool floats = IsFloating(entry.dtype) && IsFloating(wanted.dtype);
  if (entry.unreadable.empty() && shape == wanted.shape &&
      (floats || entry.dtype == wanted.dtype)) {
    return std::nullopt;
  }
  const std::string is = entry.unreadable.empty()
                             ? TensorSpec{shape, entry.dtype}.ToString()
                             : entry.unreadable;
  return WeightMismatch{
      entry.name,
      absl::StrCat(entry.name, " is ", is, ", not ", wanted.ToString()),
      entry.unreadable.empty() ? shape : Shape(), wanted.shape};
}

WeightDifferences WeightFile::Compare(Module& model) const {
  // Both before the first view of a name: each writes all names anew.
  const std::vector<Parameter*> parameters = model.Parameters();
  const std::vector<Buffer*> buffers = model.Buffers();
  std::vector<WantedWeight> wanted;
  for (const Parameter* p : parameters) {
    wanted.push_back({NamesOf(*p), {WholeShape(*p), p->dtype}});
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
  absl::flat_hash_set<const StoredTensor*> known;
  for (const WantedWeight& weight : wanted) {
    for (absl::string_view name : weight.names) {
      const Found* const one = FindOne(name);
      if (one == nullptr) continue;
      for (const Part& part : one->parts) known.insert(&part.tensor());
    }
    const Found* const found = Find(weight.names);
    // "model.0.weight" is no wrapped "0.weight" if it is wanted as well.
    const bool is_anothers =
        found != nullptr && found->wrappers > 0 &&
        wanted_names.contains(found->parts[0].tensor().name);
    if (found == nullptr || is_anothers) {
      if (!IsOptional(weight.names[0])) {
        differences.missing.emplace_back(weight.names[0]);
      }
      continue;
    }
    std::optional<WeightMismatch> mismatch = Mismatch(*found, weight.spec);
    if (!mismatch.has_value()) continue;
    mismatch->name = std::string(weight.names[0]);
    differences.mismatched.push_back(mismatch->sentence);
    differences.mismatches.push_back(*std::move(mismatch));
  }
  for (const auto& source : opened_.sources) {
    for (const StoredTensor& tensor : source->tensors()) {
      if (known.contains(&tensor) || IsOptional(tensor.name)) continue;
      differences.unexpected.push_back(tensor.name);
    }
  }
  differences.nearest =
      NearestNames(differences.missing, differences.unexpected);
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
  return found != nullptr && !Mismatch(*found, wanted).has_value();
}

bool WeightFile::Has(const Parameter& parameter) const {
  return HasAny(NamesOf(parameter), {WholeShape(parameter), parameter.dtype});
}

bool WeightFile::Has(const Buffer& buffer) const {
  return HasAny({absl::string_view(buffer.name)}, {buffer.shape, buffer.dtype});
}

absl::StatusOr<bool> WeightFile::Read(const Parameter& parameter,
                                      const Tensor& into) const {
  if (!parameter.sharding.is_split()) return ReadAny(NamesOf(parameter), into);
  CachingAllocator memory;
  TROUPE_ASSIGN_OR_RETURN(
      const Tensor whole,
      Tensor::Create(parameter.global_shape, into.dtype(), memory));
  TROUPE_ASSIGN_OR_RETURN(const bool found, ReadAny(NamesOf(parameter), whole));
  if (found) CopyPiece(parameter, whole, into);
  return found;
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
  const Found& found = *Find(names);
  const bool transpose = IsTransposed(found.parts[0].tensor().name);
  const auto parts = static_cast<std::int64_t>(found.parts.size());
  const std::int64_t rows = parts == 1 ? 0 : into.shape()[0] / parts;
  for (std::int64_t i = 0; i < parts; ++i) {
    const Tensor to = parts == 1 ? into : into.Slice(i * rows, (i + 1) * rows);
    TROUPE_RETURN_IF_ERROR(ReadPart(found.parts[i], transpose, to));
  }
  return true;
}

absl::Status WeightFile::ReadPart(const Part& part, bool transpose,
                                  const Tensor& into) const {
  const StoredTensor& tensor = part.tensor();
  if (tensor.dtype == into.dtype() && !transpose) {
    return part.source->Read(part.index, into);
  }
  CachingAllocator memory;
  TROUPE_ASSIGN_OR_RETURN(const Tensor read,
                          Tensor::Create(tensor.shape, tensor.dtype, memory));
  TROUPE_RETURN_IF_ERROR(part.source->Read(part.index, read));
  ConvertInto(read, transpose, into);
  return absl::OkStatus();
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
