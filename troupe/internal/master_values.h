// The f32 copies of a model's 16-bit parameters that an optimizer with
// f32_master updates (nn/optim/arena_optimizer.h), when a program changes the
// parameters itself: by Load(), by a collective, by hand.
//
//   MasterReads reads;                        // of a model
//   reads.Add(parameter, read, kernels, nullptr);       // Load() of the model
//   reads.Attach(parameters, kernels);        // its optimizer has been made
//   TROUPE_RETURN_IF_ERROR(FollowValues(kernels, arena, range));  // an update
//
// Without FollowValues(), an update would overwrite what the program has
// written with the rounding of the copy.
//
// Errors: base::StatusError, those of the file. Threads: the rank's own.

#ifndef TROUPE_INTERNAL_MASTER_VALUES_H_
#define TROUPE_INTERNAL_MASTER_VALUES_H_

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "actors/chunks/chunk_parameters.h"
#include "nn/arena/parameter_arena.h"
#include "nn/autograd/parameter.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/tensor.h"
#include "troupe/state.h"

namespace troupe {

// Returns the copies, in an arena of their own; null: there are none.
const nn::Tensor* MasterValuesOf(const nn::ParameterArena& arena);

// Makes each copy in `range` that does not round to its parameter's value equal
// to that value. A device with queues does it in the order of kCompute, and
// reads and writes about as much memory as for an update.
absl::Status FollowValues(nn::Kernels& kernels, const nn::ParameterArena& arena,
                          const nn::ArenaRange& range);

// Reads of a model's parameters from files, for their copies.
class MasterReads {
 public:
  // Takes a read of a 16-bit parameter. It fills the copy at once, or, without
  // an optimizer (`parameters` is null), when one is made.
  void Add(const nn::Parameter& parameter, SavedModel::ReadFn read,
           nn::Kernels& kernels, const actors::ChunkParameters* parameters);
  // Fills the copies of an optimizer that was made now.
  void Attach(const actors::ChunkParameters& parameters, nn::Kernels& kernels);

 private:
  absl::flat_hash_map<const nn::Parameter*, SavedModel::ReadFn> waiting_;
};

}  // namespace troupe

#endif  // TROUPE_INTERNAL_MASTER_VALUES_H_
