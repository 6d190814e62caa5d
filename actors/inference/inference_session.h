// A trained model to compute with: inputs go in, outputs come out. Its stages
// may lie on several ranks, so that no rank holds the whole model; then the
// inputs of one call follow each other through the pipeline.
//
//   TROUPE_ASSIGN_OR_RETURN(Checkpoint saved,
//                           OpenCheckpoint(files, "checkpoints/char_gpt"));
//   spec.plan.mesh = pipeline::Mesh(/*dp=*/1, /*pp=*/2);
//   spec.plan.cuts = {3};
//   TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<InferenceSession> session,
//                           InferenceSession::Open(spec, std::move(saved)));
//   TROUPE_ASSIGN_OR_RETURN(const nn::Tensor logits, session->Run(tokens));
//
// The bits are those of one rank with the whole model, under any cuts, and
// under any mesh that the checkpoint was written with. Evaluation mode: nothing
// is dropped, batch norms use what they have tracked.
//
// Errors: as Open() and Run(). The first one of Run() ends the session: it is
// that of all later calls. Deadline: JobSpec::timeout, between two signs of
// life of the stages.
// Threads: one at a time; each rank computes in a thread of its own.

#ifndef ACTORS_INFERENCE_INFERENCE_SESSION_H_
#define ACTORS_INFERENCE_INFERENCE_SESSION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/protocol/inference_call.h"
#include "actors/spec/job_spec.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

class InferenceSession {
 public:
  // Reads of `spec` what says which model it is, and where: model, dtype,
  // device or kernels, `train` for the shape of a sample, and of the plan pp,
  // cuts, placement and threads. There is one replica.
  //   kInvalidArgument: the stages do not fit the model, or the checkpoint is
  //     of another one; names what.
  //   kResourceExhausted: the system refuses the threads.
  static absl::StatusOr<std::unique_ptr<InferenceSession>> Open(
      const JobSpec& spec, Checkpoint checkpoint);
  virtual ~InferenceSession() = default;

  // What the model says of each of `inputs`: [B, ...] of any B that it takes,
  // as a dataset has them, in memory of the host. Floats become JobSpec::dtype.
  //   kInvalidArgument: the model does not take one; names module and shapes.
  //   other: from reading the checkpoint, or the kernels.
  absl::StatusOr<std::vector<nn::Tensor>> Run(
      absl::Span<const nn::Tensor> inputs);
  absl::StatusOr<nn::Tensor> Run(const nn::Tensor& input);

  // Most bytes that the tensors of each rank have held at once so far.
  const std::vector<std::uint64_t>& peak_bytes() const { return peak_bytes_; }

 protected:
  // A call that has been answered, or will be, in another thread.
  virtual std::shared_ptr<const InferenceCall> Ask(
      std::vector<nn::Tensor> inputs) = 0;

 private:
  absl::Status failure_;
  std::vector<std::uint64_t> peak_bytes_;
};

}  // namespace troupe::actors

#endif  // ACTORS_INFERENCE_INFERENCE_SESSION_H_
