// The batches of steps that are recorded: each step's come to the same place,
// where the graph finds them.
//
//   GraphInputs inputs(kernels, nn::DType::kF32, batches);
//   TROUPE_ASSIGN_OR_RETURN(StepBatches placed, inputs.Place(step, batches));
//   Forward(placed[0].inputs, placed[0].targets);   // recorded
//
// A batch is put into one block of the host's and travels by way of a staging
// place (staged_copy.h): the next one is copied while a graph runs, and a small
// step has few calls of the driver, which cost microseconds each.
//
// Threads: one at a time.

#ifndef ACTORS_ENGINE_GRAPH_INPUTS_H_
#define ACTORS_ENGINE_GRAPH_INPUTS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/chunks/staged_copy.h"
#include "actors/chunks/step_types.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/tensor.h"
#include "nn/tensor/tensor_block.h"

namespace troupe::actors {

class GraphInputs {
 public:
  // For batches that are like `batches`. `dtype`: what loaded floats become.
  // `kernels` has queues, and outlives it.
  GraphInputs(nn::Kernels& kernels, nn::DType dtype,
              const StepBatches& batches);

  // Whether `batches` have these shapes and dtypes.
  bool Fit(const StepBatches& batches) const;
  // The batches where the graph reads them, when kCompute has come here. The
  // first call takes the memory.
  //   kResourceExhausted: there is none for the places.
  absl::StatusOr<StepBatches> Place(std::int64_t step,
                                    const StepBatches& batches);
  // i32[2] for each micro-batch: where layers draw (DropoutMask::place).
  const nn::Tensor& draws() const { return here_.back(); }

 private:
  absl::Status TakeMemory();

  nn::Kernels& kernels_;
  const nn::DType dtype_;
  std::vector<nn::Tensor> like_;  // meta
  // Where a batch comes to, in the dtypes of the loader.
  std::optional<nn::TensorBlock> block_;
  // What steps read: tensors of the block, or others where dtypes differ. In
  // the order of FlatOf(), then draws().
  std::vector<nn::Tensor> here_;
  StagedCopy staged_;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_GRAPH_INPUTS_H_
