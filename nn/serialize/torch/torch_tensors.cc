#include "nn/serialize/torch/torch_tensors.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/check.h"

namespace troupe::nn {
namespace {

// Keys of a checkpoint under which its state dict is.
constexpr absl::string_view kStateDictKeys[] = {
    "state_dict", "model_state_dict", "model", "module"};

// Limits on nested checkpoints, and on calls around a tensor.
constexpr int kNestingMax = 4;
constexpr std::size_t kKeysShownMax = 10;
constexpr std::size_t kAxesMax = 64;

struct StorageKind {
  absl::string_view name;
  std::int64_t item_bytes;
  std::optional<DType> dtype;
};
constexpr StorageKind kStorageKinds[] = {
    {"Float", 4, DType::kF32},         {"Double", 8, DType::kF64},
    {"BFloat16", 2, DType::kBF16},     {"Half", 2, DType::kF16},
    {"Int", 4, DType::kI32},           {"Long", 8, DType::kI64},
    {"Byte", 1, DType::kU8},           {"Bool", 1, std::nullopt},
    {"Char", 1, std::nullopt},         {"Short", 2, std::nullopt},
    {"ComplexFloat", 8, std::nullopt}, {"ComplexDouble", 16, std::nullopt},
    {"QInt8", 1, std::nullopt},        {"QUInt8", 1, std::nullopt},
    {"QInt32", 4, std::nullopt},       {"Untyped", 1, std::nullopt},
};

absl::Status TensorDamaged(absl::string_view name, absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat("is damaged: tensor \"", PrintableName(name), "\" ", what));
}

// Reads a tensor from the arguments of the calls that rebuild it in Python.
class TensorReader {
 public:
  TensorReader(const PickleTree& tree, absl::string_view name)
      : tree_(tree), name_(name) {}

  absl::StatusOr<TorchTensor> Read(PickleId id) {
    for (int i = 0; i < kNestingMax; ++i) {
      const PickleValue& call = tree_[id];
      absl::string_view function = call.text;
      PickleId arguments = call.items[0];
      const std::vector<PickleId>& items = tree_[arguments].items;
      if (!absl::ConsumePrefix(&function, "torch._utils._rebuild_")) {
        // torch._tensor._rebuild_from_type_v2(function, type, arguments, state)
        if (items.size() < 3 || tree_[items[0]].kind != PickleKind::kName) {
          return Damaged("lacks arguments");
        }
        function = tree_[items[0]].text;
        if (!absl::ConsumePrefix(&function, "torch._utils._rebuild_")) {
          return Damaged("is rebuilt by an unknown function");
        }
        arguments = items[2];
      }
      if (absl::StartsWith(function, "tensor")) {
        return Rebuild(tree_[arguments].items, function == "tensor_v3");
      }
      const std::vector<PickleId>& inner = tree_[arguments].items;
      if (inner.empty() || !IsTensorCall(tree_, inner[0])) {
        return Damaged("has no data");
      }
      id = inner[0];
    }
    return Damaged("is nested too deeply");
  }

  static bool IsTensorCall(const PickleTree& tree, PickleId id) {
    return tree[id].kind == PickleKind::kCall &&
           (absl::StartsWith(tree[id].text, "torch._utils._rebuild_") ||
            absl::StartsWith(tree[id].text, "torch._tensor._rebuild_"));
  }

 private:
  absl::Status Damaged(absl::string_view what) const {
    return TensorDamaged(name_, what);
  }

  // Arguments: storage, offset, size, strides, and others; the dtype of
  // _rebuild_tensor_v3() is the seventh.
  absl::StatusOr<TorchTensor> Rebuild(const std::vector<PickleId>& arguments,
                                      bool has_dtype) {
    if (arguments.size() < 4 || (has_dtype && arguments.size() < 7)) {
      return Damaged("lacks arguments");
    }
    TorchTensor tensor;
    tensor.stored.name = std::string(name_);
    absl::StatusOr<TorchStorage> storage = StorageOf(tree_, arguments[0]);
    if (!storage.ok()) return Damaged("has no storage");
    tensor.storage = *std::move(storage);
    if (has_dtype) {
      const PickleValue& dtype = tree_[arguments[6]];
      tensor.storage.dtype = std::nullopt;
      tensor.storage.kind =
          std::string(absl::StripPrefix(dtype.text, "torch."));
    }
    TROUPE_ASSIGN_OR_RETURN(tensor.offset, Integer(arguments[1]));
    TROUPE_ASSIGN_OR_RETURN(const std::vector<std::int64_t> extents,
                            Integers(arguments[2]));
    TROUPE_ASSIGN_OR_RETURN(tensor.strides, Integers(arguments[3]));
    if (extents.size() != tensor.strides.size()) {
      return Damaged("has another number of strides than axes");
    }
    const bool fits = Shape::Fits(extents);
    if (!fits || !tensor.storage.dtype.has_value()) {
      tensor.stored.unreadable = absl::StrCat(
          PrintableName(absl::AsciiStrToLower(tensor.storage.kind)), "[",
          absl::StrJoin(extents, ", "), "]");
      return tensor;
    }
    tensor.stored.dtype = *tensor.storage.dtype;
    tensor.stored.shape = Shape(extents);
    TROUPE_RETURN_IF_ERROR(CheckInStorage(tensor));
    return tensor;
  }

  absl::Status CheckInStorage(const TorchTensor& tensor) const {
    const Shape& shape = tensor.stored.shape;
    if (tensor.offset < 0) return Damaged("begins before its storage");
    if (shape.numel() == 0) return absl::OkStatus();
    // Each step is checked, so that no product overflows.
    std::int64_t left = tensor.storage.items - 1 - tensor.offset;
    for (int axis = 0; axis < shape.rank() && left >= 0; ++axis) {
      const std::int64_t stride = tensor.strides[axis];
      const std::int64_t steps = shape[axis] - 1;
      if (stride < 0) return Damaged("has a negative stride");
      if (stride > 0 && steps > left / stride) {
        left = -1;
      } else {
        left -= steps * stride;
      }
    }
    return left >= 0 ? absl::OkStatus() : Damaged("ends beyond its storage");
  }

  absl::StatusOr<std::int64_t> Integer(PickleId id) const {
    if (tree_[id].kind == PickleKind::kInteger) return tree_[id].number;
    return Damaged("has an argument that is no integer");
  }

  absl::StatusOr<std::vector<std::int64_t>> Integers(PickleId id) const {
    const PickleValue* value = &tree_[id];
    // torch.Size((2, 3))
    if (value->kind == PickleKind::kCall && value->text == "torch.Size" &&
        !tree_[value->items[0]].items.empty()) {
      value = &tree_[tree_[value->items[0]].items[0]];
    }
    if ((value->kind != PickleKind::kTuple &&
         value->kind != PickleKind::kList) ||
        value->items.size() > kAxesMax) {
      return Damaged("has no list of extents");
    }
    std::vector<std::int64_t> integers;
    for (PickleId item : value->items) {
      TROUPE_ASSIGN_OR_RETURN(integers.emplace_back(), Integer(item));
    }
    return integers;
  }

  const PickleTree& tree_;
  const absl::string_view name_;
};

// Returns the last value of a text key; null if there is none.
const PickleId* ValueAt(const PickleTree& tree, const PickleValue& dictionary,
                        absl::string_view key) {
  const PickleId* value = nullptr;
  for (std::size_t i = 0; i + 1 < dictionary.items.size(); i += 2) {
    if (tree.TextOf(dictionary.items[i]) == key) {
      value = &dictionary.items[i + 1];
    }
  }
  return value;
}

bool HasTensors(const PickleTree& tree, const PickleValue& dictionary) {
  for (std::size_t i = 1; i < dictionary.items.size(); i += 2) {
    if (TensorReader::IsTensorCall(tree, dictionary.items[i])) return true;
  }
  return false;
}

// Returns the state dict in a checkpoint, or `dictionary` itself.
const PickleValue* StateDictIn(const PickleTree& tree,
                               const PickleValue* dictionary) {
  for (int depth = 0; depth < kNestingMax; ++depth) {
    const PickleValue* inner = nullptr;
    for (absl::string_view key : kStateDictKeys) {
      const PickleId* const id = ValueAt(tree, *dictionary, key);
      if (id == nullptr || tree[*id].kind != PickleKind::kDict) continue;
      inner = &tree[*id];
      break;
    }
    if (inner == nullptr) break;
    dictionary = inner;
  }
  return HasTensors(tree, *dictionary) ? dictionary : nullptr;
}

absl::Status NoStateDict(const PickleTree& tree) {
  const PickleValue& root = tree[tree.root];
  const absl::string_view advice =
      "; save the state dict: torch.save(model.state_dict(), path)";
  if (root.kind != PickleKind::kDict) {
    return absl::NotFoundError(absl::StrCat("has no state dict, but ",
                                            tree.Describe(tree.root), advice));
  }
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < root.items.size() && keys.size() < kKeysShownMax;
       i += 2) {
    const absl::string_view key = tree.TextOf(root.items[i]);
    keys.push_back(key.empty() ? tree.Describe(root.items[i])
                               : PrintableName(key));
  }
  return absl::NotFoundError(
      absl::StrCat("has no state dict, neither itself nor under ",
                   absl::StrJoin(kStateDictKeys, ", "), "; its keys: ",
                   keys.empty() ? "none" : absl::StrJoin(keys, ", "), advice));
}

}  // namespace

absl::StatusOr<TorchStorage> StorageOf(const PickleTree& tree, PickleId id) {
  const absl::Status damaged =
      absl::DataLossError("is damaged: a storage is not described");
  if (tree[id].kind != PickleKind::kExternal) return damaged;
  const std::vector<PickleId>& items = tree[tree[id].items[0]].items;
  if (items.size() < 5 || tree.TextOf(items[0]) != "storage" ||
      tree[items[1]].kind != PickleKind::kName ||
      tree[items[2]].kind != PickleKind::kText ||
      tree[items[4]].kind != PickleKind::kInteger) {
    return damaged;
  }
  TorchStorage storage;
  absl::string_view kind = tree[items[1]].text;
  kind = absl::StripPrefix(kind, "torch.");
  kind = absl::StripPrefix(kind, "cuda.");
  kind = absl::StripPrefix(kind, "storage.");
  kind = absl::StripSuffix(kind, "Storage");
  storage.kind = std::string(kind);
  for (const StorageKind& known : kStorageKinds) {
    if (known.name != kind) continue;
    storage.dtype = known.dtype;
    storage.item_bytes = known.item_bytes;
  }
  storage.key = std::string(tree[items[2]].text);
  storage.items = tree[items[4]].number;
  if (storage.items < 0 || storage.items > Shape::kMaxNumel) return damaged;
  // (key of the view, first item, items) of a storage within another one.
  if (items.size() > 5 && tree[items[5]].kind == PickleKind::kTuple) {
    const std::vector<PickleId>& view = tree[items[5]].items;
    if (view.size() != 3 || tree[view[1]].kind != PickleKind::kInteger ||
        tree[view[2]].kind != PickleKind::kInteger) {
      return damaged;
    }
    const std::int64_t first = tree[view[1]].number;
    const std::int64_t count = tree[view[2]].number;
    if (first < 0 || count < 0 || first > storage.items ||
        count > storage.items - first) {
      return damaged;
    }
    storage.first_item = first;
    storage.items = count;
  }
  return storage;
}

absl::StatusOr<std::vector<TorchTensor>> FindStateDict(const PickleTree& tree) {
  const PickleValue& root = tree[tree.root];
  const PickleValue* const dictionary =
      root.kind == PickleKind::kDict ? StateDictIn(tree, &root) : nullptr;
  if (dictionary == nullptr) return NoStateDict(tree);
  std::vector<TorchTensor> tensors;
  // A key that is set again keeps its last value.
  absl::flat_hash_map<absl::string_view, std::size_t> places;
  for (std::size_t i = 0; i + 1 < dictionary->items.size(); i += 2) {
    const absl::string_view name = tree.TextOf(dictionary->items[i]);
    const PickleId value = dictionary->items[i + 1];
    if (name.empty() || !TensorReader::IsTensorCall(tree, value)) continue;
    TROUPE_ASSIGN_OR_RETURN(TorchTensor tensor,
                            TensorReader(tree, name).Read(value));
    const auto [place, is_new] = places.emplace(name, tensors.size());
    if (is_new) {
      tensors.push_back(std::move(tensor));
    } else {
      tensors[place->second] = std::move(tensor);
    }
  }
  return tensors;
}

}  // namespace troupe::nn
