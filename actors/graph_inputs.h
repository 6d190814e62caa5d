// The batches of steps that are recorded: each step's come to the same place,
// where the graph finds them.
//
//   GraphInputs inputs(kernels, nn::DType::kF32, batches);
//   TROUPE_ASSIGN_OR_RETURN(StepBatches placed, inputs.Place(step, batches));
//   Forward(placed[0].inputs, placed[0].targets);   // recorded
//
// A batch travels by way of staging places (staged_copy.h), so the next one is
// copied while a graph runs.
//
// Threads: one at a time.

#ifndef ACTORS_GRAPH_INPUTS_H_
#define ACTORS_GRAPH_INPUTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/staged_copy.h"
#include "actors/step_types.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/tensor.h"

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
  // In the order of FlatOf(), then draws().
  std::vector<nn::Tensor> here_;
  std::vector<StagedCopy> staged_;
};

}  // namespace troupe::actors

#endif  // ACTORS_GRAPH_INPUTS_H_
