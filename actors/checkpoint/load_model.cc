#include "actors/checkpoint/load_model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/checkpoint/layout.h"
#include "actors/checkpoint/state_dict.h"
#include "base/check.h"
#include "nn/optim/arena_optimizer.h"

namespace troupe::actors {

absl::StatusOr<Checkpoint> OpenCheckpoint(base::FileSystem& files,
                                          const std::string& path) {
  if (files.Exists(base::JoinPath(path, kStateName))) {
    return Checkpoint::Open(files, path);
  }
  TROUPE_ASSIGN_OR_RETURN(const std::string latest,
                          FindLatestCheckpoint(files, path));
  return Checkpoint::Open(files, latest);
}

absl::Status LoadModel(const Checkpoint& checkpoint, nn::Module& model,
                       nn::Kernels& kernels) {
  for (nn::Parameter* p : model.Parameters()) {
    TROUPE_ASSIGN_OR_RETURN(
        p->value, nn::Tensor::Create(p->shape, p->dtype, kernels.allocator()));
    TROUPE_RETURN_IF_ERROR(
        checkpoint.ReadModel(SavedName(checkpoint, *p), p->value));
  }
  const std::vector<nn::Buffer*> buffers = model.Buffers();
  TROUPE_RETURN_IF_ERROR(nn::BindBuffers(buffers, kernels));
  for (nn::Buffer* b : buffers) {
    TROUPE_RETURN_IF_ERROR(
        ReadModelTensor(checkpoint, b->name, b->value, kernels.allocator()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<nn::NamedTensor>> ReadModel(
    const Checkpoint& checkpoint, nn::Allocator& allocator, ReadValues values) {
  std::vector<nn::NamedTensor> tensors;
  for (const std::string& name : checkpoint.ModelNames()) {
    const std::string master_name = absl::StrCat(name, ".", nn::kMasterState);
    const nn::SafetensorsEntry* const master =
        values == ReadValues::kMaster ? checkpoint.FindOptimizer(master_name)
                                      : nullptr;
    const nn::SafetensorsEntry& entry =
        master != nullptr ? *master : *checkpoint.FindModel(name);
    TROUPE_ASSIGN_OR_RETURN(
        nn::Tensor tensor,
        nn::Tensor::Create(entry.shape, entry.dtype, allocator));
    TROUPE_RETURN_IF_ERROR(master != nullptr
                               ? checkpoint.ReadOptimizer(master_name, tensor)
                               : checkpoint.ReadModel(name, tensor));
    tensors.push_back({name, std::move(tensor)});
  }
  return tensors;
}

}  // namespace troupe::actors
