// The protocol: every message of a job, and the typed interface of every actor.
//
// Messages are small. Tensors, batches and communicators travel as
// reference-counted handles, inside one process; messages with such handles are
// marked *in-process*, and CAF refuses to serialise them. No message has a
// float, since infinities hang the serialiser of CAF 0.17: metrics travel as
// bit patterns (LossBits in step_types.h).
//
// Every message between ranks and supervisor carries the generation, and its
// step if it concerns one. A receiver drops messages of another generation.

#ifndef ACTORS_PROTOCOL_MESSAGES_H_
#define ACTORS_PROTOCOL_MESSAGES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "actors/caf/caf.h"
#include "actors/checkpoint/writer.h"
#include "actors/chunks/step/step_types.h"
#include "actors/protocol/evaluation_bits.h"
#include "actors/protocol/rank_waits.h"
#include "actors/protocol/report_queue.h"
#include "comm/communicator.h"
#include "pipeline/group_id.h"

namespace troupe::actors {

// ---- between supervisor and ranks ----------------------------------------

// The rank may run all steps below `until`, which only grows. Grants are the
// job's credits; the supervisor stops a job by granting no more.
struct Grant {
  std::int32_t generation = 0;
  std::int64_t until = 0;
  static constexpr char kName[] = "troupe.grant";
  auto fields() { return std::tie(generation, until); }
};

// Rank `rank` has committed the steps [first, first + losses.size()).
struct Progress {
  std::int32_t generation = 0;
  std::int32_t rank = 0;
  std::int64_t first = 0;
  std::vector<LossBits> losses;
  // Peak number of bytes that the rank's tensors have held so far.
  std::uint64_t peak_bytes = 0;
  static constexpr char kName[] = "troupe.progress";
  auto fields() {
    return std::tie(generation, rank, first, losses, peak_bytes);
  }
};

// A sign of life from a rank that runs an evaluation, and so commits no steps.
struct Alive {
  std::int32_t generation = 0;
  std::int32_t rank = 0;
  static constexpr char kName[] = "troupe.alive";
  auto fields() { return std::tie(generation, rank); }
};

// Asks a rank to evaluate its part of the test set, after `step` steps.
struct Evaluate {
  std::int32_t generation = 0;
  std::int64_t step = 0;
  static constexpr char kName[] = "troupe.evaluate";
  auto fields() { return std::tie(generation, step); }
};

// The sum of losses over a rank's part of the test set.
struct Evaluated {
  std::int32_t generation = 0;
  std::int32_t rank = 0;
  std::int64_t step = 0;
  LossBits loss;
  // Number of targets (JobSpec::count_targets), of one rank of each replica and
  // 0 of the others; -1: the loss has the number.
  std::int64_t targets = -1;
  static constexpr char kName[] = "troupe.evaluated";
  auto fields() { return std::tie(generation, rank, step, loss, targets); }
};

// Asks a writer of a shard to copy what it writes, in its state after `step`
// steps, and to keep the copy until SaveShard: its own parts of tensors with
// `in_place`, otherwise whole tensors. If replicas share buffers or are
// compared, all ranks are asked, and so are those that have slices or pieces
// to gather for whole tensors: they share and gather first; those with `copies`
// false copy nothing, and those with `compares` true hash their state. Each
// answers.
struct TakeSnapshot {
  std::int32_t generation = 0;
  std::int64_t step = 0;
  bool copies = true;
  bool compares = false;
  bool in_place = false;
  static constexpr char kName[] = "troupe.take_snapshot";
  auto fields() {
    return std::tie(generation, step, copies, compares, in_place);
  }
};
struct SnapshotTaken {
  std::int32_t generation = 0;
  std::int32_t rank = 0;
  std::int64_t step = 0;
  std::vector<std::uint64_t> hashes;  // Snapshot::hashes
  static constexpr char kName[] = "troupe.snapshot_taken";
  auto fields() { return std::tie(generation, rank, step, hashes); }
};

// Asks a writer of a shard to write its copy to `folder`, as one of `shards`,
// and as number `writer` of its `writers`.
struct SaveShard {
  std::int32_t generation = 0;
  std::int64_t step = 0;
  std::int32_t shards = 0;
  std::int32_t writer = 0;
  std::int32_t writers = 1;
  std::string folder;
  static constexpr char kName[] = "troupe.save_shard";
  auto fields() {
    return std::tie(generation, step, shards, writer, writers, folder);
  }
};
struct ShardSaved {
  std::int32_t generation = 0;
  std::int64_t step = 0;
  ShardSummary summary;
  static constexpr char kName[] = "troupe.shard_saved";
  auto fields() { return std::tie(generation, step, summary); }
};

// Asks the writer that publishes checkpoints to make the folder of one.
struct BeginCheckpoint {
  std::int32_t generation = 0;
  std::int64_t step = 0;
  static constexpr char kName[] = "troupe.open_checkpoint";
  auto fields() { return std::tie(generation, step); }
};
struct CheckpointOpened {
  std::int32_t generation = 0;
  std::int64_t step = 0;
  std::string folder;
  static constexpr char kName[] = "troupe.checkpoint_opened";
  auto fields() { return std::tie(generation, step, folder); }
};

// Tells the same writer that all shards are written: it publishes the
// checkpoint under its final name.
struct CommitCheckpoint {
  std::int32_t generation = 0;
  std::int64_t step = 0;
  std::string folder;
  std::vector<ShardSummary> shards;
  EvaluationBits evaluations;  // for TrainerState
  static constexpr char kName[] = "troupe.commit_checkpoint";
  auto fields() {
    return std::tie(generation, step, folder, shards, evaluations);
  }
};
struct CheckpointSaved {
  std::int32_t generation = 0;
  std::int64_t step = 0;
  std::string path;
  static constexpr char kName[] = "troupe.checkpoint_saved";
  auto fields() { return std::tie(generation, step, path); }
};

// Reports that an actor has failed, or that a process is lost. `code` is an
// absl::StatusCode.
struct Failure {
  std::int32_t generation = 0;
  std::int32_t rank = -1;
  std::string actor;
  std::int32_t code = 0;
  std::string message;
  std::int32_t process = -1;  // the process that is lost or silent; -1: none
  static constexpr char kName[] = "troupe.failure";
  auto fields() {
    return std::tie(generation, rank, actor, code, message, process);
  }
};

// Asks a rank, in any state until EndRank, what it waits for. It answers the
// sender with RankWaits.
struct AskWaits {
  std::int32_t generation = 0;
  static constexpr char kName[] = "troupe.ask_waits";
  auto fields() { return std::tie(generation); }
};

// Ends a rank: the job is over. If `code` is not ok, the rank first aborts its
// collectives with that status.
struct EndRank {
  std::int32_t generation = 0;
  std::int32_t code = 0;  // absl::StatusCode
  std::string message;
  static constexpr char kName[] = "troupe.end_rank";
  auto fields() { return std::tie(generation, code, message); }
};

// ---- inside a rank (in-process) -------------------------------------------

// Asks the loader for the batches of steps [first, first + count).
struct LoadRequest {
  StepKind kind = StepKind::kTrain;
  std::int64_t first = 0;
  std::int64_t count = 0;
};
struct Loaded {
  StepKind kind = StepKind::kTrain;
  std::int64_t first = 0;
  std::vector<StepBatches> steps;
};

// Asks the compute strand to run these steps, in order. A kind that
// SharesState() has none: `first` is the number of steps before it.
struct RunSteps {
  StepKind kind = StepKind::kTrain;
  std::int64_t first = 0;
  std::vector<StepBatches> steps;
};
struct StepsDone {
  StepKind kind = StepKind::kTrain;
  std::int64_t first = 0;
  std::vector<LossBits> losses;
  std::uint64_t peak_bytes = 0;  // the same as in Progress
  // Outputs of a prediction, one for each step, from the rank with the last
  // stage.
  std::vector<nn::Tensor> outputs;
};

// Asks the communication strand to start a collective for the compute strand's
// action `action` of step `step`.
struct Launch {
  std::int32_t generation = 0;
  std::int64_t step = 0;
  std::int32_t action = 0;
  pipeline::GroupId group = pipeline::GroupId::kDp;
  comm::Collective collective;
  comm::Event after;  // completes when the range may be read
  // Whether Launched is sent once the collective has started and not once it
  // has completed: then the rank's device waits for the result.
  bool answer_at_once = false;
};
struct Launched {
  std::int32_t generation = 0;
  std::int64_t step = 0;
  std::int32_t action = 0;
  std::int32_t code = 0;  // absl::StatusCode
  std::string message;
  // Completes with the collective; set if Launch::answer_at_once was.
  comm::Event done;
};

// Gives the checkpoint writer of the process a shard that a rank holds.
struct WriteShard {
  SaveShard order;
  std::int32_t shard = 0;
  SnapshotPtr snapshot;
};

// ---- to the observer (in-process) -----------------------------------------

// The last message to the reporter: the reports not yet delivered, and how the
// job ended.
struct FinishReports {
  std::vector<Report> reports;
  absl::StatusOr<JobResult> result;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, LossBits& x) {
  return f(caf::meta::type_name("troupe.loss"), x.sum, x.count, x.correct,
           x.skipped, x.scale, x.grad_norm);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, ShardSummary& x) {
  return f(caf::meta::type_name("troupe.shard_summary"), x.shard, x.writer,
           x.writers, x.bytes, x.data_bytes, x.written_bytes, x.layout, x.files,
           x.tensors, x.states, x.sums);
}

}  // namespace troupe::actors

namespace troupe::actors {
struct ComputePeers;
class InferenceCall;
}  // namespace troupe::actors
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(
    std::shared_ptr<const troupe::actors::ComputePeers>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(std::shared_ptr<troupe::actors::InferenceCall>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::LoadRequest)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::Loaded)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::RunSteps)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::StepsDone)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::Launch)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::Launched)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::Transfer)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::SnapshotPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::WriteShard)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(std::vector<troupe::actors::Report>)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::FinishReports)

CAF_BEGIN_TYPE_ID_BLOCK(troupe, caf::first_custom_type_id)
CAF_ADD_TYPE_ID(troupe, (std::shared_ptr<const troupe::actors::ComputePeers>))
CAF_ADD_TYPE_ID(troupe, (std::shared_ptr<troupe::actors::InferenceCall>))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::Grant))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::Progress))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::Alive))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::Evaluate))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::Evaluated))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::TakeSnapshot))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::SnapshotTaken))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::SaveShard))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::ShardSaved))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::BeginCheckpoint))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::CheckpointOpened))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::EvaluationBits))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::CommitCheckpoint))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::CheckpointSaved))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::Failure))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::EndRank))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::AskWaits))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::RankWait))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::RankWaits))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::LoadRequest))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::Loaded))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::RunSteps))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::StepsDone))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::Launch))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::Launched))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::Transfer))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::SnapshotPtr))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::WriteShard))
CAF_ADD_TYPE_ID(troupe, (std::vector<troupe::actors::Report>))
CAF_ADD_TYPE_ID(troupe, (troupe::actors::FinishReports))
CAF_ADD_ATOM(troupe, troupe::actors, begin_atom, "begin")
CAF_ADD_ATOM(troupe, troupe::actors, snapshot_atom, "snapshot")
CAF_ADD_ATOM(troupe, troupe::actors, resume_atom, "resume")
CAF_ADD_ATOM(troupe, troupe::actors, drive_atom, "drive")
CAF_ADD_ATOM(troupe, troupe::actors, halt_atom, "halt")
CAF_ADD_ATOM(troupe, troupe::actors, reported_atom, "reported")
CAF_ADD_ATOM(troupe, troupe::actors, watch_atom, "watch")
CAF_ADD_ATOM(troupe, troupe::actors, ask_atom, "ask")
CAF_END_TYPE_ID_BLOCK(troupe)

namespace troupe::actors {

// Registers these messages with an actor system's configuration. Defined in
// messages.cc, since it takes the compiler seconds.
void AddMessageTypes(caf::actor_system_config& config);

using LoaderActor =
    caf::typed_actor<caf::replies_to<LoadRequest>::with<Loaded>>;

using CommActor = caf::typed_actor<
    caf::reacts_to<Launch>,       // -> Launched to the compute strand
    caf::reacts_to<drive_atom>>;  // collectives have work: drive them

struct ComputePeers;  // defined below, since it holds handles of actors
class StageLink;      // stage_link.h

using ComputeActor = caf::typed_actor<
    caf::reacts_to<std::shared_ptr<const ComputePeers>>,  // comes first
    caf::reacts_to<RunSteps>,     // -> StepsDone to the rank
    caf::reacts_to<Launched>,     // a collective has completed, or started
    caf::reacts_to<Transfer>,     // sent by a neighbouring stage
    caf::reacts_to<resume_atom>,  // to itself: the mailbox was read, go on
    caf::reacts_to<drive_atom>,   // its device or a collective has progressed
    caf::replies_to<snapshot_atom, TakeSnapshot>::with<SnapshotPtr>>;

// Runs the program of a rank, in the place of a compute strand.
using ProgramActor = caf::typed_actor<
    caf::reacts_to<begin_atom>,   // run it
    caf::reacts_to<resume_atom>,  // to itself: the mailbox was read, go on
    caf::reacts_to<drive_atom>,   // a group that it waits for has progressed
    caf::reacts_to<watch_atom>>;  // to itself: has a wait taken too long?

using RankActor = caf::typed_actor<
    caf::reacts_to<Grant>,         // -> Progress, later
    caf::reacts_to<StepsDone>,     // sent by its compute strand
    caf::reacts_to<Evaluate>,      // -> Evaluated
    caf::reacts_to<TakeSnapshot>,  // -> SnapshotTaken
    caf::reacts_to<SaveShard>,     // -> ShardSaved, by its checkpoint writer
    caf::reacts_to<AskWaits>,      // -> RankWaits, to the sender
    caf::reacts_to<EndRank>>;

// The actor that receives a compute strand's results: a rank, or an
// InferenceActor.
using StepsSink = caf::typed_actor<caf::reacts_to<StepsDone>>;

// The actors that a compute strand sends to; sent to it once all of them are
// spawned.
struct ComputePeers {
  StepsSink rank;
  CommActor comm;
  std::shared_ptr<StageLink> stages;  // null if the model has one stage
};
using ComputePeersPtr = std::shared_ptr<const ComputePeers>;

// Writes checkpoints. It reports each error as a Failure.
using CheckpointerActor =
    caf::typed_actor<caf::reacts_to<BeginCheckpoint>,    // -> CheckpointOpened
                     caf::reacts_to<WriteShard>,         // -> ShardSaved
                     caf::reacts_to<CommitCheckpoint>>;  // -> CheckpointSaved

using ReporterActor = caf::typed_actor<
    caf::reacts_to<std::vector<Report>>,  // -> reported, a credit
    caf::reacts_to<FinishReports>>;       // sets the job's outcome

// The actor that receives failures: the supervisor, or an InferenceActor.
using FailureSink = caf::typed_actor<caf::reacts_to<Failure>>;

// Runs a trained model whose stages are spread over compute strands.
using InferenceCallPtr = std::shared_ptr<InferenceCall>;  // inference_call.h
using InferenceActor = caf::typed_actor<
    caf::reacts_to<InferenceCallPtr>,  // -> InferenceCall::Set()
    caf::reacts_to<StepsDone>,         // sent by its compute strands
    caf::reacts_to<Failure>,           // sent by its compute strands
    caf::reacts_to<watch_atom>>;       // to itself: check for silence

using SupervisorActor = caf::typed_actor<
    caf::reacts_to<begin_atom>, caf::reacts_to<Progress>, caf::reacts_to<Alive>,
    caf::reacts_to<Evaluated>, caf::reacts_to<SnapshotTaken>,
    caf::reacts_to<CheckpointOpened>, caf::reacts_to<ShardSaved>,
    caf::reacts_to<CheckpointSaved>, caf::reacts_to<Failure>,
    caf::reacts_to<RankWaits>,      // a rank's answer to AskWaits
    caf::reacts_to<halt_atom>,      // a stop was requested
    caf::reacts_to<reported_atom>,  // sent by the reporter
    caf::reacts_to<watch_atom>,     // to itself: check for silence
    caf::reacts_to<ask_atom>>;      // to itself: send AskWaits again

}  // namespace troupe::actors

#endif  // ACTORS_PROTOCOL_MESSAGES_H_
