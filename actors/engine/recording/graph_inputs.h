// Input buffers of a recorded step: the batches of each step are copied to the
// same addresses, from which the graph reads them.
//
//   GraphInputs inputs(kernels, nn::DType::kF32, batches);
//   TROUPE_ASSIGN_OR_RETURN(StepBatches placed, inputs.Place(step, batches));
//   Forward(placed[0].inputs, placed[0].targets);   // recorded
//
// The batches of a step are packed into one block of host memory and copied by
// way of a staging buffer (staged_copy.h). The next step's are thus copied
// while a graph runs, and a small step makes few driver calls, which cost
// microseconds each.
//
// Threads: one at a time.

#ifndef ACTORS_ENGINE_RECORDING_GRAPH_INPUTS_H_
#define ACTORS_ENGINE_RECORDING_GRAPH_INPUTS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/chunks/step/staged_copy.h"
#include "actors/chunks/step/step_types.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/tensor.h"
#include "nn/tensor/tensor_block.h"

namespace troupe::actors {

class GraphInputs {
 public:
  // Serves batches with the shapes and dtypes of `batches`. `dtype`: the dtype
  // to which loaded floats are converted. `kernels` has queues, and outlives
  // it.
  GraphInputs(nn::Kernels& kernels, nn::DType dtype,
              const StepBatches& batches);

  // Returns whether `batches` have these shapes and dtypes.
  bool Fit(const StepBatches& batches) const;
  // Enqueues the copies and returns the batches at the addresses that the graph
  // reads; work of kCompute that is enqueued later may read them. The first
  // call allocates the memory.
  //   kResourceExhausted: there is no memory for the buffers.
  absl::StatusOr<StepBatches> Place(std::int64_t step,
                                    const StepBatches& batches);
  // Returns i32[2] for each micro-batch: the step and sample position from
  // which layers draw random numbers (DropoutMask::place).
  const nn::Tensor& draws() const { return here_.back(); }

 private:
  absl::Status TakeMemory();

  nn::Kernels& kernels_;
  const nn::DType dtype_;
  std::vector<nn::Tensor> like_;  // meta tensors
  // Device memory of the batches, in the dtypes of the loader.
  std::optional<nn::TensorBlock> block_;
  // Tensors that steps read: those of the block, or converted copies.
  // They are in the order of FlatOf(); draws() is the last.
  std::vector<nn::Tensor> here_;
  StagedCopy staged_;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_RECORDING_GRAPH_INPUTS_H_
