// Finds the tensors of a model in the pickle of a file of torch.save.
//
//   TROUPE_ASSIGN_OR_RETURN(const PickleTree tree, ParsePickle(bytes));
//   TROUPE_ASSIGN_OR_RETURN(const std::vector<TorchTensor> tensors,
//                           FindStateDict(tree));
//   tensors[0].stored.name;   // "conv1.weight"
//   tensors[0].storage.key;   // "0"
//
// A file has a state dict, a dictionary of tensors by name, or a checkpoint,
// a dictionary that has one under "state_dict" (Lightning, timm),
// "model_state_dict", "model" (nanoGPT) or "module" (DeepSpeed), in this order.
// All else in a checkpoint is passed over: optimizer, counters,
// hyper-parameters.
//
// A tensor is a view of a storage: an offset and strides in elements, which are
// checked against the storage's length. Storages of dtypes that no Tensor has,
// bool and complex numbers for example, have tensors that are listed, but
// unreadable.

#ifndef NN_SERIALIZE_TORCH_TORCH_TENSORS_H_
#define NN_SERIALIZE_TORCH_TORCH_TENSORS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nn/serialize/tensor_source.h"
#include "nn/serialize/torch/pickle.h"

namespace troupe::nn {

struct TorchStorage {
  std::string key;              // name of its bytes in the file
  std::string kind;             // "Float", of torch.FloatStorage
  std::optional<DType> dtype;   // nullopt: a dtype that no Tensor has
  std::int64_t item_bytes = 0;  // 0: not known
  std::int64_t items = 0;
  // Number of its first element in the bytes of its key; not 0 only in old
  // files.
  std::int64_t first_item = 0;
};

struct TorchTensor {
  StoredTensor stored;
  TorchStorage storage;
  std::int64_t offset = 0;            // elements
  std::vector<std::int64_t> strides;  // elements, one for each axis
};

// Returns the storage that a kExternal value stands for.
//   kDataLoss: it stands for none.
absl::StatusOr<TorchStorage> StorageOf(const PickleTree& tree, PickleId id);

//   kNotFound: there is no state dict; has the keys that there are.
//   kDataLoss: a tensor is damaged; names it.
// Errors are in words that complete "FILE ".
absl::StatusOr<std::vector<TorchTensor>> FindStateDict(const PickleTree& tree);

}  // namespace troupe::nn

#endif  // NN_SERIALIZE_TORCH_TORCH_TENSORS_H_
