// The step engine: runs one rank's table of actions over its chunk, on the
// compute strand. It knows tensors, tapes and tables, and no actors: whoever
// owns it carries collectives and transfers.
//
//   StepRunner::Setup setup = ...;
//   TROUPE_ASSIGN_OR_RETURN(auto runner, StepRunner::Create(setup, &host));
//   runner->Begin(StepKind::kTrain, step, batches);
//   while (true) {
//     TROUPE_ASSIGN_OR_RETURN(StepRunner::State state, runner->Advance());
//     if (state == StepRunner::State::kDone) break;
//     ... kWaiting: until CollectiveDone() or Deliver() was called;
//         kYielded: at once, after looking into the mailbox ...
//   }
//   runner->loss();
//
// In a backward, the runner looks up after every piece (nn/autograd/tape.h):
// buckets whose last gradient has landed are launched, buckets that are reduced
// and read no more are updated, while the rest of the backward still runs.
//
// Two ways to reduce, with the same additions in the same order: by the host
// (launched, and heard of later), or inline, on this very strand, where handing
// over would cost more than the work (StagePlan::reduce_inline); there, tables
// reduce and update a bucket in one pass (RU).
//
// Errors: the first one ends the runner; it names step, micro-batch and module.
// Threads: one at a time.

#ifndef ACTORS_STEP_RUNNER_H_
#define ACTORS_STEP_RUNNER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/bucket_update.h"
#include "actors/job_spec.h"
#include "actors/step_types.h"
#include "actors/trace.h"
#include "comm/communicator.h"
#include "nn/arena/parameter_arena.h"
#include "nn/autograd/tape.h"
#include "nn/kernels/kernels.h"
#include "nn/modules/module.h"
#include "pipeline/plan.h"
#include "pipeline/table_cursor.h"

namespace troupe::actors {

class StepRunner : private nn::GradientSink {
 public:
  // What the runner asks of its owner.
  class Host {
   public:
    virtual ~Host() = default;
    // Starts the collective; CollectiveDone(action) must follow, later.
    virtual void Launch(int action, GroupKind group,
                        const comm::Collective& collective) = 0;
    // To the next stage (forward) or the previous one.
    virtual void Send(bool forward, int micro_batch,
                      const nn::Tensor& tensor) = 0;
  };

  struct Setup {
    int rank = 0;
    const JobSpec* spec = nullptr;
    const pipeline::Plan* plan = nullptr;
    // The rank's own table for training; the plan's, unless a test bends it.
    pipeline::StepTable train_table;
    comm::Communicator* world = nullptr;
    comm::Communicator* dp = nullptr;
    // Looks up after every piece, and never reduces inline: the simulator's
    // way to interleave ranks.
    bool simulated = false;
    // That fill parameters, before the first step.
    int start_threads = 1;
  };

  enum class State { kWaiting, kYielded, kDone };

  static absl::StatusOr<std::unique_ptr<StepRunner>> Create(const Setup& setup,
                                                            Host* host);
  ~StepRunner() override;

  // Starts a step. `batches`: one per micro-batch of the table.
  absl::Status Begin(StepKind kind, std::int64_t step, StepBatches batches);
  absl::StatusOr<State> Advance();
  void CollectiveDone(int action);
  void Deliver(const Transfer& transfer);

  // Of the last step: training over all ranks, evaluation over this one.
  LossBits loss() const;
  std::int64_t step() const { return step_; }
  StepKind kind() const { return kind_; }
  // What is still to run, for a message about a step that stands still.
  std::string Unfinished() const { return cursor_->Unfinished(); }

  SnapshotPtr MakeSnapshot(std::int64_t step);
  // Errors as Checkpoint::ReadModel: names the tensor that is missing or of
  // another shape.
  absl::Status Restore(const Checkpoint& checkpoint);

  const nn::ParameterArena& arena() const { return *arena_; }
  nn::Kernels& kernels() { return *kernels_; }

 private:
  struct MicroBatch;
  struct BucketCounts {
    int grads_left = 0;
    int readers_left = 0;
  };

  StepRunner(const Setup& setup, Host* host);
  absl::Status Init();

  // GradientSink:
  void GradientNeeded(nn::Parameter& parameter) override;
  void GradientComplete(nn::Parameter& parameter) override;
  void LastReaderDone(nn::Parameter& parameter) override;

  absl::Status Run(int action);
  absl::Status RunForward(int micro_batch);
  absl::StatusOr<nn::Tensor> StageInput(int micro_batch);
  absl::Status AddLoss(int micro_batch, const nn::Tensor& stats);
  void BeginBackward(int action);
  absl::StatusOr<bool> AdvanceBackward();
  void CountGradients(const nn::Tape& tape);
  void GiveWhatIsDone();
  void GiveIfDone(int bucket);
  absl::Status Reduce(int action, GroupKind group,
                      const comm::Collective& collective);
  void Reduced(int action);
  comm::Collective ReduceUpdateOf(int bucket);
  nn::StepScalars Scalars() const;
  absl::Status Update(int bucket);
  void Trace(TraceKind kind, TracePhase phase, absl::string_view name,
             int bucket = -1);
  bool IsLastStage() const { return last_stage_; }

  const Setup setup_;
  Host* const host_;
  const bool first_stage_, last_stage_;
  const bool inline_;
  bool traced_ = false;

  std::shared_ptr<nn::Kernels> kernels_;
  std::unique_ptr<nn::Module> module_;
  std::shared_ptr<nn::ParameterArena> arena_;
  std::shared_ptr<nn::Optimizer> optimizer_;
  std::vector<int> bucket_of_;                          // by Parameter::index
  std::vector<std::shared_ptr<BucketUpdate>> updates_;  // by bucket

  pipeline::TableCursor train_, evaluate_;
  pipeline::TableCursor* cursor_ = nullptr;
  StepKind kind_ = StepKind::kTrain;
  std::int64_t step_ = -1;
  StepBatches batches_;
  std::vector<MicroBatch> micro_batches_;
  std::vector<Transfer> early_;  // arrived before their step began
  nn::Tensor stats_;             // f64[3], summed over ranks by LR

  std::optional<nn::BackwardPass> pass_;
  int backward_ = -1;  // the action of `pass_`
  bool counting_ = false;
  bool weights_begun_ = false;  // of the micro-batch that completes gradients
  std::vector<BucketCounts> counts_;
  int in_flight_ = 0;  // collectives launched and not heard of
};

}  // namespace troupe::actors

#endif  // ACTORS_STEP_RUNNER_H_
