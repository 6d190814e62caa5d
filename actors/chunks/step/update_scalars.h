// The scalars that a step's updates read (nn/kernels/step_scalars.h): the
// step's own ones or, if updates have a queue apart, a copy that this queue
// makes after the all-reduce. The next step may then write to its scalars
// before this one's updates have read theirs.
//
//   TROUPE_ASSIGN_OR_RETURN(UpdateScalars updates,
//                           UpdateScalars::Create(kernels, queue, own));
//   updates.BeginStep();                       // `own` may be written again
//   updates.NoteReduced(done);                 // the sums are in `own`
//   TROUPE_RETURN_IF_ERROR(updates.Pass());    // before the first update
//   TROUPE_ASSIGN_OR_RETURN(comm::Collective sum,
//                           updates.SumFindings(/*adds=*/true));
//   updates.NoteFindingsReduced(done);
//   Update(updates.tensor());
//
// Threads: one at a time.

#ifndef ACTORS_CHUNKS_STEP_UPDATE_SCALARS_H_
#define ACTORS_CHUNKS_STEP_UPDATE_SCALARS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/event.h"
#include "comm/communicator.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

class UpdateScalars {
 public:
  // `own`: scalars of the step, written by kCompute. `queue`: queue of updates
  // on a device with queues. `kernels` outlives it.
  //   kResourceExhausted: there is no memory for the copy.
  static absl::StatusOr<UpdateScalars> Create(nn::Kernels& kernels,
                                              nn::Queue queue,
                                              const nn::Tensor& own);

  // Starts a step. Makes kCompute wait until `own` may be written again.
  void BeginStep();
  // Stores `done`, the event that completes with the all-reduced sums in `own`.
  void NoteReduced(const base::Event& done) { reduced_ = done; }
  // Makes later work of the queue of updates find the sums in tensor(). Further
  // calls in a step do nothing.
  absl::Status Pass();
  // Notes that a launch of a graph included Pass().
  void NotePassed() { passed_ = true; }
  // Returns the scalars that updates read.
  const nn::Tensor& tensor() const { return tensor_; }

  // Returns the all-reduce of the findings in the gradients, in place. `adds`
  // is false on a rank that adds 0. Its range may be read once found_ready()
  // has completed.
  absl::StatusOr<comm::Collective> SumFindings(bool adds);
  const base::Event& found_ready() const { return found_ready_; }
  // Makes later work of the queue of updates wait for `done`, the event that
  // completes with the result of SumFindings().
  void NoteFindingsReduced(const base::Event& done);

 private:
  UpdateScalars(nn::Kernels& kernels, nn::Queue queue, const nn::Tensor& own,
                const nn::Tensor& tensor)
      : kernels_(&kernels), queue_(queue), own_(own), tensor_(tensor) {}

  nn::Kernels* kernels_;
  nn::Queue queue_;
  nn::Tensor own_;
  nn::Tensor tensor_;    // own_, or the copy
  bool passed_ = false;  // whether tensor_ was copied in this step
  base::Event reduced_, found_ready_;
  base::Event copied_;  // completes when own_ may be written again
};

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_STEP_UPDATE_SCALARS_H_
