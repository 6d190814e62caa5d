// A trained model outside of a job: to predict, or to generate text.
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
#include "base/file_system.h"
#include "nn/kernels/kernels.h"
#include "nn/modules/module.h"
#include "nn/serialize/safetensors.h"
#include "nn/tensor/allocator.h"

namespace troupe::actors {

// The checkpoint at `path`, or where that is a run's folder, its newest.
//   kNotFound: there is none.
absl::StatusOr<Checkpoint> OpenCheckpoint(base::FileSystem& files,
                                          const std::string& path);

// Gives the model's parameters and buffers memory of `kernels`, on the host,
// with what the checkpoint has for them.
//   kNotFound, kInvalidArgument: it lacks one, or has it in another shape or
//     dtype; the message names both.
absl::Status LoadModel(const Checkpoint& checkpoint, nn::Module& model,
                       nn::Kernels& kernels);

// Parameters and buffers of the model, as the checkpoint has them, by name, in
// memory of `allocator` on the host.
//   Errors: as Checkpoint::ReadModel(), and where there is no memory.
absl::StatusOr<std::vector<nn::NamedTensor>> ReadModel(
    const Checkpoint& checkpoint, nn::Allocator& allocator);

}  // namespace troupe::actors

#endif  // ACTORS_CHECKPOINT_LOAD_MODEL_H_
