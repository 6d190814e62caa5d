// The step engine: walks one rank's table of actions, on the compute strand. It
// knows tensors and tables, and no actors: whoever owns it carries collectives
// and transfers.
//
//   TROUPE_ASSIGN_OR_RETURN(auto runner,
//                           StepRunner::Create(setup, &host, &wait));
//   for (StepBatches& batches : steps) {
//     TROUPE_RETURN_IF_ERROR(
//         runner->RunStep(StepKind::kTrain, step++, std::move(batches)));
//     TROUPE_ASSIGN_OR_RETURN(auto loss, runner->TakeLoss());
//   }
//
// A step waits as plain code waits, through StrandWait (strand_wait.h): for
// tensors of other stages, and for collectives. Meanwhile, from another stack
// of the same thread, its owner calls CollectiveDone() and Deliver().
//
// The parts: a Chunk computes (chunk.h), a Reducer runs collectives
// (reducer.h), a StepLoss adds up losses (step_loss.h), a StepTrace notes what
// happens (step_trace.h), and BucketEvents keep what a device with queues waits
// for (bucket_events.h). The runner only knows what may come next; of it,
// step_tail.cc has what follows a step, step_transfers.cc what passes between
// stages, step_ties.cc what stages share, and step_snapshot.cc what is saved.
//
// In a backward, the runner looks up after every piece (nn/autograd/tape.h):
// buckets whose last gradient has landed are launched, buckets that are reduced
// and read no more are updated, while the rest of the backward still runs.
//
// Across steps (Plan::cross_step): RunStep() returns when nothing is left of
// the step but collectives under way and updates behind them. The next step's
// forward begins with that tail (step_tail.h) still going on, and waits for a
// bucket's update before it reads the bucket; its backward begins when the tail
// has ended. A step's end is what Host::StepDone() tells of, then.
//
// On a device with queues RunStep() returns when the step's work is enqueued. A
// rank with peers gives its updates to the queue of the reductions, and the
// next step's forward waits for them there, bucket by bucket (bucket_events.h);
// an evaluation and a snapshot wait for all.
//
// Where the device records graphs, a training step may be recorded once and
// launched from then on: step_graph.h chooses, and has the runner's part.
//
// Errors: the first one ends the runner; it names step, micro-batch and module.
// Threads: one at a time; the owner's calls only while the step waits.

#ifndef ACTORS_ENGINE_STEP_RUNNER_H_
#define ACTORS_ENGINE_STEP_RUNNER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/chunks/chunk.h"
#include "actors/chunks/loss_scaler.h"
#include "actors/chunks/step_loss.h"
#include "actors/chunks/step_trace.h"
#include "actors/chunks/step_types.h"
#include "actors/engine/bucket_events.h"
#include "actors/engine/layer_collectives.h"
#include "actors/engine/queue_work.h"
#include "actors/engine/quiet_wait.h"
#include "actors/engine/rank_groups.h"
#include "actors/engine/reducer.h"
#include "actors/engine/step_graph.h"
#include "actors/engine/step_position.h"
#include "actors/engine/step_tail.h"
#include "actors/engine/strand_wait.h"
#include "actors/engine/tied_sums.h"
#include "actors/spec/job_spec.h"
#include "comm/communicator.h"
#include "nn/arena/parameter_arena.h"
#include "nn/kernels/kernels.h"
#include "pipeline/plan.h"
#include "pipeline/table_cursor.h"
#include "pipeline/table_index.h"

namespace troupe::actors {

class StepRunner : private Chunk::Listener {
 public:
  // What the runner asks of its owner. CollectiveDone(step, action), with the
  // step() of the call, must follow each Launch(), later.
  class Host : public Reducer::Launcher {
   public:
    // To stage `stage` of this replica, which may be on this rank too. Forward:
    // activations, from the stage before; else gradients (Transfer::tensors).
    // They are there when `ready` is done.
    virtual void Send(int stage, bool forward, int micro_batch,
                      const nn::TensorList& tensors,
                      const base::Event& ready) = 0;
    // All of a step is done: its loss can be taken, and parameters are those
    // behind it until this returns. An error ends the runner.
    virtual absl::Status StepDone(StepKind /*kind*/, std::int64_t /*step*/) {
      return absl::OkStatus();
    }
  };

  struct Setup {
    int rank = 0;
    int local_rank = 0;  // among those of its host
    const JobSpec* spec = nullptr;
    const pipeline::Plan* plan = nullptr;
    // The rank's own table for training; the plan's, unless a test bends it.
    pipeline::StepTable train_table;
    const RankGroups* groups = nullptr;
    // Number of threads that fill the parameters before the first step.
    int start_threads = 1;
    // Where it notes where it stands; may be null.
    StepPosition* position = nullptr;
    // Where gradients live that are the host's; null: where all tensors do.
    nn::Allocator* grad_allocator = nullptr;
  };

  // All pointers outlive the runner.
  static absl::StatusOr<std::unique_ptr<StepRunner>> Create(const Setup& setup,
                                                            Host* host,
                                                            StrandWait* wait);
  ~StepRunner() {
    if (reduces_on_device_) setup_.groups->dp->UseRanges({});
  }

  // Runs a step to its end, or to where its tail begins. `batches`: one per
  // micro-batch of the table.
  //   kInvalidArgument: a transfer that came early, as Deliver().
  absl::Status RunStep(StepKind kind, std::int64_t step, StepBatches batches);
  // Runs something of a step's tail; false where nothing may run now. For who
  // has no next step yet.
  absl::StatusOr<bool> AdvanceTail() { return AdvanceTail(/*preferred=*/-1); }
  // Runs all of it, and waits for what it needs.
  absl::Status FinishTail();
  // `done`: when its result is there; a device that works later than it is
  // told waits for that by itself.
  void CollectiveDone(std::int64_t step, int action,
                      const comm::Event& done = {});
  // `why` action `action` of a step has failed, where its group says so of its
  // ranks: with step and bucket.
  absl::Status CollectiveFailed(std::int64_t step, int action,
                                const absl::Status& why) const;
  // One for a step that has not begun is kept until it does.
  //   kInvalidArgument: this rank's step receives no such tensor, or has it.
  absl::Status Deliver(const Transfer& transfer);

  // As StepLoss::Take(): losses of steps in their order, training's over all
  // ranks, evaluation's over this one.
  absl::StatusOr<std::optional<LossBits>> TakeLoss();
  // Behind TakeLoss() of a prediction, where the model's last chunk is: what it
  // gave, in memory of the host.
  nn::Tensor TakeOutput();
  bool has_outputs() const { return chunks_.back()->is_last(); }
  std::int64_t step() const { return step_; }
  StepKind kind() const { return kind_; }
  // What is still to run, for a message about a step that stands still.
  std::string Unfinished() const;

  // A copy after a whole step: no tail is left.
  //   kResourceExhausted: there is no memory for the copy; names the tensor.
  absl::StatusOr<PendingSnapshot> MakeSnapshot(std::int64_t step);
  // Errors as Checkpoint::ReadModel: names the tensor that is missing or of
  // another shape.
  absl::Status Restore(const Checkpoint& checkpoint);

  int chunk_count() const { return static_cast<int>(chunks_.size()); }
  const nn::ParameterArena& arena(int chunk = 0) const {
    return chunks_[chunk]->arena();
  }
  nn::Kernels& kernels() { return *kernels_; }
  // Whether its collectives are work of devices, which whoever starts them
  // gives to this rank's device: in the thread of the runner.
  bool reduces_on_device() const { return reduces_on_device_; }
  // Whether a step is being recorded. The owner then answers each Launch()
  // within the call.
  bool recording() const { return quiet_wait_.quiet(); }

 private:
  StepRunner(const Setup& setup, Host* host, StrandWait* wait);
  absl::Status Init();

  // Chunk::Listener:
  void BucketReady(int chunk, int bucket) override;
  void BucketReleased(int chunk, int bucket) override;
  absl::Status AwaitUpdate(int chunk, int bucket) override;

  const pipeline::Action& ActionOf(int id) const {
    return cursor_->table().actions[id];
  }
  absl::Status Begin(StepKind kind, std::int64_t step, StepBatches batches);
  absl::Status RunEagerly(StepKind kind, std::int64_t step,
                          StepBatches batches);
  // An error of memory that has run out, with what holds the most of it.
  absl::Status WithHolders(const absl::Status& exhausted) const;
  // The table, to its end or to where the tail begins.
  absl::Status Walk();
  // Whether this rank's training steps can be recorded.
  bool RecordsSteps() const;
  void MakeGraphs();
  absl::Status RunTrainStep(std::int64_t step, StepBatches batches);
  // False where nothing was recorded: the step has still to run.
  absl::StatusOr<bool> CaptureStep(std::int64_t step,
                                   const StepBatches& batches);
  // `begun`: by CaptureStep().
  absl::Status LaunchStep(std::int64_t step, const StepBatches& batches,
                          bool begun);
  // Nothing may run: says which tensor it waits for, if it waits for one.
  void NoteWait();
  // Runs the first action that may start; false where none may.
  absl::StatusOr<bool> RunNext(bool busy);
  StepLoss& loss() { return losses_[turn_]; }
  Chunk& ChunkOf(const pipeline::Action& action) {
    return *chunks_[action.chunk];
  }
  // Updates run behind reductions, on their queue. A rank that has no peers
  // has nothing to wait for, and keeps them in the compute queue.
  nn::Queue UpdateQueue() const;
  // Tells the rank's groups of its device.
  void JoinGroups();
  // Adds the queue for communication along axis number `axis`; null where the
  // device has none.
  QueueWork* AddWork(int axis);
  absl::Status MakeChunks();
  // The loss scaler, where the plan has a dynamic scale.
  absl::Status MakeScaler();
  bool SavesLossScaler() const;
  bool OverlapsSteps() const;
  absl::Status EndStep(StepLoss& loss, StepKind kind, std::int64_t step);
  // `preferred`: an update that goes before others; -1: none.
  absl::StatusOr<bool> AdvanceTail(int preferred);
  absl::Status Run(int id);
  void Send(const pipeline::Action& action);
  // Keeps what the model gave until TakeOutput().
  absl::Status KeepOutput(const nn::Tensor& output);
  absl::Status RunForward(const pipeline::Action& action);
  // Whether backwards may update parameters (Chunk::UpdateInBackward). With
  // peers it would depend on them whether the loss is there in time, and so how
  // much memory a step takes.
  bool UpdatesInBackward() const {
    return loss_reduced_ && !tail_ && setup_.plan->mesh.size() == 1 &&
           setup_.plan->RankPlanOf(setup_.rank).reduce_inline;
  }
  absl::Status RunBackward(const pipeline::Action& action);
  absl::Status Reduce(int id);
  absl::StatusOr<comm::Collective> CollectiveOf(const pipeline::Action& action);
  comm::Event ReadyOf(const pipeline::Action& action) const;
  nn::Tensor TiedGrads(const TiedSums::Copy& copy) const {
    return chunks_[copy.chunk]->TiedGrads(copy.bucket);
  }
  absl::Status ReduceTied(int id);
  // The first of the rank's copies has the sum when `done` is; ends the actions
  // that are about it. An error is in tied_status_.
  void FinishTied(TiedSums::Sum& sum, const comm::Event& done,
                  pipeline::TableCursor& cursor, StepTrace& trace);
  // Brings the sum to the other copies, and makes all ready to be reduced.
  absl::Status PassOnTied(const TiedSums::Sum& sum, const comm::Event& done);
  // Collective `id` has ended, in the step that `cursor` and `trace` are of.
  void Reduced(int id, const comm::Event& done, pipeline::TableCursor& cursor,
               StepTrace& trace);
  absl::Status Inspect(StepLoss& loss);
  absl::Status Update(const pipeline::Action& action, StepLoss& loss,
                      StepTrace& trace);
  // Transferred tensors, where this rank's kernels may read them.
  absl::StatusOr<nn::TensorList> Here(const Transfer& transfer);

  const Setup setup_;
  StepPosition own_position_;
  StepPosition& position_;
  Host* const host_;
  QuietWait quiet_wait_;
  StrandWait* const wait_;
  std::shared_ptr<nn::Kernels> kernels_;
  std::vector<std::unique_ptr<QueueWork>> works_;  // of a device with queues
  bool reduces_on_device_ = false;
  StepTrace trace_;
  std::vector<std::unique_ptr<LayerCollectives>> layer_collectives_;
  std::vector<nn::AxisCollectives> axes_;
  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::unique_ptr<LossScaler> scaler_;  // null: the scale never changes
  // Two where steps overlap: they take turns.
  std::vector<StepLoss> losses_;
  std::size_t turn_ = 0;  // losses_[turn_] is the present step's
  Reducer reducer_;
  TiedSums ties_;
  absl::Status tied_status_;  // of what follows a sum over stages

  // A table and where the step stands in it.
  struct Table {
    Table(const pipeline::StepTable& table, const std::vector<int>& buckets)
        : cursor(table, buckets), index(table) {}
    pipeline::TableCursor cursor;
    const pipeline::TableIndex index;  // finds receives
  };
  Table train_, evaluate_;
  std::optional<StepTail> tail_;  // none where steps do not overlap
  Table* table_ = nullptr;
  pipeline::TableCursor* cursor_ = nullptr;  // that of *table_
  StepKind kind_ = StepKind::kTrain;
  std::int64_t step_ = -1;
  // The gradients of this step, as a whole: what they are like is known to this
  // rank, to all.
  bool inspected_ = false, concluded_ = false;
  bool loss_reduced_ = false;
  // A device that works later than it is told waits for them.
  std::optional<BucketEvents> events_;
  std::optional<StepGraphs> graphs_;  // none where steps are not recorded
  std::vector<Transfer> early_;       // arrived before their step began
  std::deque<nn::Tensor> outputs_;    // of predictions, until they are taken
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_STEP_RUNNER_H_
