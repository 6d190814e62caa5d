#include "actors/chunks/step/model_batches.h"

#include "base/check.h"

namespace troupe::actors {

absl::StatusOr<nn::Tensor> ModelBatches::Convert(const nn::Tensor& loaded,
                                                 StagedCopy& copy) {
  const nn::DType dtype =
      nn::IsFloating(loaded.dtype()) ? dtype_ : loaded.dtype();
  const bool is_here =
      kernels_.queues() == nullptr || loaded.device() == kernels_.device();
  if (is_here && loaded.dtype() == dtype) return loaded;
  TROUPE_ASSIGN_OR_RETURN(
      nn::Tensor here,
      nn::Tensor::Create(loaded.shape(), dtype, kernels_.allocator()));
  TROUPE_RETURN_IF_ERROR(is_here ? kernels_.Copy(loaded, here)
                                 : copy.Bring(loaded, here));
  return here;
}

absl::StatusOr<data::Batch> ModelBatches::Whole(int micro_batch) {
  data::Batch batch = batches_[micro_batch];
  TROUPE_ASSIGN_OR_RETURN(batch.inputs, Inputs(micro_batch));
  TROUPE_ASSIGN_OR_RETURN(batch.targets, Targets(micro_batch));
  return batch;
}

}  // namespace troupe::actors
