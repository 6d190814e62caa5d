// Runs a trained model on inputs. Its stages may be on several ranks, so that
// no rank holds the whole model; then the inputs of one call follow each other
// through the pipeline.
//
//   TROUPE_ASSIGN_OR_RETURN(Checkpoint saved,
//                           OpenCheckpoint(files, "checkpoints/char_gpt"));
//   spec.plan.mesh = pipeline::Mesh(/*dp=*/1, /*pp=*/2);
//   spec.plan.cuts = {3};
//   TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<InferenceSession> session,
//                           InferenceSession::Open(spec, std::move(saved)));
//   TROUPE_ASSIGN_OR_RETURN(const nn::Tensor logits, session->Run(tokens));
//
// The bits are those of one rank with the whole model, under any cuts, and for
// a checkpoint of any mesh. Evaluation mode: dropout is off, batch norms use
// their running statistics.
//
// Errors: those of Open() and Run(). One of Run() ends the stages and, with it,
// the calls that were started by then. A later call starts them anew from the
// checkpoint, which must still be there; texts have to begin anew, too.
// Deadline: JobSpec::timeout, between two signs of life of the stages. Silence
// ends the session: all later calls return it.
// Threads: one at a time; each rank computes in a thread of its own.

#ifndef ACTORS_INFERENCE_INFERENCE_SESSION_H_
#define ACTORS_INFERENCE_INFERENCE_SESSION_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/protocol/inference_call.h"
#include "actors/spec/job_spec.h"
#include "nn/modules/module.h"
#include "nn/tensor/tensor.h"
#include "nn/tensor/text_places.h"

namespace troupe::actors {

class InferenceSession {
 public:
  // Opens a session with one replica of the model. Of `spec` it uses model,
  // dtype, device, kernels, kernel_choices, timeout, `train` for the shape of a
  // sample, and of the plan pp, cuts, virtual_stages, placement and
  // threads_per_rank. `runs` makes modules to run in place of the model, which
  // is a child of theirs without a name, so that parameters keep their names;
  // null: the model itself.
  //   kInvalidArgument: the stages do not fit the model, or the checkpoint is
  //     of another one; names the difference.
  //   kResourceExhausted: the system refuses the threads.
  static absl::StatusOr<std::unique_ptr<InferenceSession>> Open(
      const JobSpec& spec, Checkpoint checkpoint,
      const nn::ModelFactory& runs = nullptr);
  virtual ~InferenceSession() = default;

  // Returns the model's output for each of `inputs`: [B, ...] of any B that the
  // model takes, as a dataset has them, in memory of the host. Floats are
  // converted to JobSpec::dtype.
  //   kInvalidArgument: the model does not take one; names module and shapes.
  //   other: from reading the checkpoint, or the kernels.
  absl::StatusOr<std::vector<nn::Tensor>> Run(
      absl::Span<const nn::Tensor> inputs);
  absl::StatusOr<nn::Tensor> Run(const nn::Tensor& input);
  // The same for tokens [B, T] that go on with texts, of which the session
  // keeps the keys and values: each stage those of its layers, on its rank
  // (nn/autograd/kv_cache.h). A nn::LogitsFn for f32 models.
  //   kInvalidArgument: the tokens do not fit `texts`, or these the model.
  absl::StatusOr<nn::Tensor> Run(const nn::Tensor& tokens,
                                 const nn::TextPlaces& texts);

  // Starts Run() and returns at once, so that the caller reads other inputs, or
  // starts other sessions, meanwhile. InferenceCall::Wait() returns what Run()
  // returns. Calls are answered in the order in which they were started; after
  // the first error all of them are.
  std::shared_ptr<const InferenceCall> Start(std::vector<nn::Tensor> inputs) {
    return StartCall(std::move(inputs), {});
  }

  // Returns the peak so far of the bytes of each rank's tensors.
  const std::vector<std::uint64_t>& peak_bytes() const { return peak_bytes_; }

 protected:
  // Starts a call, which another thread answers, or has answered by then.
  virtual std::shared_ptr<const InferenceCall> Ask(
      std::vector<nn::Tensor> inputs, const nn::TextPlaces& texts) = 0;
  // Starts new stages in place of those that an error has ended. A session that
  // could not calls it again.
  virtual absl::Status Reopen() = 0;

 private:
  std::shared_ptr<const InferenceCall> StartCall(std::vector<nn::Tensor> inputs,
                                                 const nn::TextPlaces& texts);
  absl::StatusOr<std::vector<nn::Tensor>> RunAll(std::vector<nn::Tensor> inputs,
                                                 const nn::TextPlaces& texts);

  absl::Status failure_;  // a call's, after which no stages were started
  // Call that was started last, as long as somebody has it.
  std::weak_ptr<const InferenceCall> last_;
  std::vector<std::uint64_t> peak_bytes_;
};

}  // namespace troupe::actors

#endif  // ACTORS_INFERENCE_INFERENCE_SESSION_H_
