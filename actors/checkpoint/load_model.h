// Loads a trained model outside of a job, to predict or to generate text.
//
//   TROUPE_ASSIGN_OR_RETURN(const Checkpoint saved,
//                           Checkpoint::Open(files, path));
//   TROUPE_RETURN_IF_ERROR(LoadModel(saved, *model, *kernels));
//   nn::Context ctx(*kernels);
//   ctx.set_training(false);
//   nn::Tensor y = (*model)(ctx, x);

#ifndef ACTORS_CHECKPOINT_LOAD_MODEL_H_
#define ACTORS_CHECKPOINT_LOAD_MODEL_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/checkpoint/checkpoint.h"
#include "base/files/file_system.h"
#include "nn/kernels/kernels.h"
#include "nn/modules/module.h"
#include "nn/serialize/safetensors.h"
#include "nn/tensor/allocator.h"

namespace troupe::actors {

// Opens the checkpoint at `path`, or if that is a folder of checkpoints, the
// newest one in it.
//   kNotFound: there is none.
absl::StatusOr<Checkpoint> OpenCheckpoint(base::FileSystem& files,
                                          const std::string& path);

// Allocates the model's parameters and buffers in memory of `kernels`, on the
// host, and reads their values from the checkpoint.
//   kNotFound: the checkpoint lacks one.
//   kInvalidArgument: it has one in another shape or dtype; names both.
absl::Status LoadModel(const Checkpoint& checkpoint, nn::Module& model,
                       nn::Kernels& kernels);

// Values that are read of 16-bit parameters, if the optimizer kept f32 master
// values of them.
enum class ReadValues { kRounded, kMaster };

// Returns all parameters and buffers in the checkpoint, sorted by name, in
// memory of `allocator` on the host.
//   Errors: the same as Checkpoint::ReadModel(), or of the allocator.
absl::StatusOr<std::vector<nn::NamedTensor>> ReadModel(
    const Checkpoint& checkpoint, nn::Allocator& allocator,
    ReadValues values = ReadValues::kRounded);

}  // namespace troupe::actors

#endif  // ACTORS_CHECKPOINT_LOAD_MODEL_H_
