// The protocol: every message of a job, and the typed interface of every actor.
//
// Messages are small. What crosses the data plane in a process (tensors,
// batches, communicators) travels as counted handles; those types are marked
// *in-process* and CAF refuses to serialise them. No float is in a message:
// metrics travel as bit patterns (facts of CAF 0.17: infinities hang its
// serialiser): LossBits in step_types.h.
//
// Every message between ranks and supervisor carries the generation, and those
// of another one are dropped by their receiver; where it concerns a step, the
// step too.

#ifndef ACTORS_PROTOCOL_MESSAGES_H_
#define ACTORS_PROTOCOL_MESSAGES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/caf/caf.h"
#include "actors/checkpoint/writer.h"
#include "actors/chunks/step_types.h"
#include "actors/protocol/evaluation_bits.h"
#include "actors/protocol/rank_waits.h"
#include "actors/protocol/report_queue.h"
#include "comm/communicator.h"
#include "pipeline/group_id.h"

namespace troupe::actors {

// ---- between supervisor and ranks ----------------------------------------

// The rank may run all steps below `until`. Grants only grow; they are the
// credits of the job, and to stop is to grant no more.
struct Grant {
  std::int32_t generation = 0;
  std::int64_t until = 0;
};

// Rank `rank` has committed the steps [first, first + losses.size()).
struct Progress {
  std::int32_t generation = 0;
  std::int32_t rank = 0;
  std::int64_t first = 0;
  std::vector<LossBits> losses;
  // Most bytes that the rank's tensors have held at once so far.
  std::uint64_t peak_bytes = 0;
};

// The rank works on an evaluation: no step, but no silence either.
struct Alive {
  std::int32_t generation = 0;
  std::int32_t rank = 0;
};

// To a rank: evaluate your part of the test set, after `step` steps.
struct Evaluate {
  std::int32_t generation = 0;
  std::int64_t step = 0;
};

// The sum over a rank's part of the test set.
struct Evaluated {
  std::int32_t generation = 0;
  std::int32_t rank = 0;
  std::int64_t step = 0;
  LossBits loss;
};

// To the holder of a shard: copy it as it is after `step` steps, and keep the
// copy until SaveShard.
struct TakeSnapshot {
  std::int32_t generation = 0;
  std::int64_t step = 0;
};
struct SnapshotTaken {
  std::int32_t generation = 0;
  std::int32_t rank = 0;
  std::int64_t step = 0;
};

// To the holder of a shard: write the copy to `folder`, as one of `shards`.
struct SaveShard {
  std::int32_t generation = 0;
  std::int64_t step = 0;
  std::int32_t shards = 0;
  std::string folder;
};
struct ShardSaved {
  std::int32_t generation = 0;
  std::int64_t step = 0;
  ShardSummary summary;
};

// To the writer that gives a checkpoint its name: make the folder.
struct BeginCheckpoint {
  std::int32_t generation = 0;
  std::int64_t step = 0;
};
struct CheckpointOpened {
  std::int32_t generation = 0;
  std::int64_t step = 0;
  std::string folder;
};

// To the same writer: all shards are there.
struct CommitCheckpoint {
  std::int32_t generation = 0;
  std::int64_t step = 0;
  std::string folder;
  std::vector<ShardSummary> shards;
  EvaluationBits evaluations;  // of TrainerState
};
struct CheckpointSaved {
  std::int32_t generation = 0;
  std::int64_t step = 0;
  std::string path;
};

// An actor cannot go on. `code` is an absl::StatusCode.
struct Failure {
  std::int32_t generation = 0;
  std::int32_t rank = -1;
  std::string actor;
  std::int32_t code = 0;
  std::string message;
  std::int32_t process = -1;  // that is lost, or silent; -1: none is
};

// To a rank, in any state until EndRank: what do you wait for? Answered by
// RankWaits, to whoever asks.
struct AskWaits {
  std::int32_t generation = 0;
};

// To a rank: the job is over. Where `code` is not ok, the rank aborts its
// collectives with that status first.
struct EndRank {
  std::int32_t generation = 0;
  std::int32_t code = 0;  // absl::StatusCode
  std::string message;
};

// ---- inside a rank (in-process) -------------------------------------------

// To the loader: load steps [first, first + count).
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

// To the compute strand: run these steps, in order.
struct RunSteps {
  StepKind kind = StepKind::kTrain;
  std::int64_t first = 0;
  std::vector<StepBatches> steps;
};
struct StepsDone {
  StepKind kind = StepKind::kTrain;
  std::int64_t first = 0;
  std::vector<LossBits> losses;
  std::uint64_t peak_bytes = 0;  // as in Progress
  // A prediction's results, a step each, from the rank with the last stage.
  std::vector<nn::Tensor> outputs;
};

// To the communication strand: start this collective for the compute strand's
// action `action` of step `step`.
struct Launch {
  std::int32_t generation = 0;
  std::int64_t step = 0;
  std::int32_t action = 0;
  pipeline::GroupId group = pipeline::GroupId::kDp;
  comm::Collective collective;
  comm::Event after;  // when its range is ready
  // The answer may come before the result: the rank's device waits for it.
  bool answer_at_once = false;
};
struct Launched {
  std::int32_t generation = 0;
  std::int64_t step = 0;
  std::int32_t action = 0;
  std::int32_t code = 0;  // absl::StatusCode
  std::string message;
  comm::Event done;  // when the result is there; that of an answer at once
};

// To the checkpoint writer of the process: a shard that a rank holds.
struct WriteShard {
  SaveShard order;
  std::int32_t shard = 0;
  SnapshotPtr snapshot;
};

// ---- to the observer (in-process) -----------------------------------------

// The last message to the reporter: what is still to be reported, and how the
// job ended.
struct FinishReports {
  std::vector<Report> reports;
  absl::StatusOr<JobResult> result;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Grant& x) {
  return f(caf::meta::type_name("troupe.grant"), x.generation, x.until);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, LossBits& x) {
  return f(caf::meta::type_name("troupe.loss"), x.sum, x.count, x.correct,
           x.skipped, x.scale, x.grad_norm);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Progress& x) {
  return f(caf::meta::type_name("troupe.progress"), x.generation, x.rank,
           x.first, x.losses, x.peak_bytes);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Alive& x) {
  return f(caf::meta::type_name("troupe.alive"), x.generation, x.rank);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Evaluate& x) {
  return f(caf::meta::type_name("troupe.evaluate"), x.generation, x.step);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Evaluated& x) {
  return f(caf::meta::type_name("troupe.evaluated"), x.generation, x.rank,
           x.step, x.loss);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, TakeSnapshot& x) {
  return f(caf::meta::type_name("troupe.take_snapshot"), x.generation, x.step);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, SnapshotTaken& x) {
  return f(caf::meta::type_name("troupe.snapshot_taken"), x.generation, x.rank,
           x.step);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, SaveShard& x) {
  return f(caf::meta::type_name("troupe.save_shard"), x.generation, x.step,
           x.shards, x.folder);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, ShardSummary& x) {
  return f(caf::meta::type_name("troupe.shard_summary"), x.shard, x.bytes,
           x.files, x.tensors);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, ShardSaved& x) {
  return f(caf::meta::type_name("troupe.shard_saved"), x.generation, x.step,
           x.summary);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, BeginCheckpoint& x) {
  return f(caf::meta::type_name("troupe.open_checkpoint"), x.generation,
           x.step);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, CheckpointOpened& x) {
  return f(caf::meta::type_name("troupe.checkpoint_opened"), x.generation,
           x.step, x.folder);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, CommitCheckpoint& x) {
  return f(caf::meta::type_name("troupe.commit_checkpoint"), x.generation,
           x.step, x.folder, x.shards, x.evaluations);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, CheckpointSaved& x) {
  return f(caf::meta::type_name("troupe.checkpoint_saved"), x.generation,
           x.step, x.path);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Failure& x) {
  return f(caf::meta::type_name("troupe.failure"), x.generation, x.rank,
           x.actor, x.code, x.message, x.process);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, AskWaits& x) {
  return f(caf::meta::type_name("troupe.ask_waits"), x.generation);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, RankWait& x) {
  return f(caf::meta::type_name("troupe.rank_wait"), x.what, x.group,
           x.collective, x.step, x.part, x.ranks, x.begun, x.nanos);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, RankWaits& x) {
  return f(caf::meta::type_name("troupe.rank_waits"), x.generation, x.rank,
           x.doing, x.busy, x.waits);
}
template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, EndRank& x) {
  return f(caf::meta::type_name("troupe.end_rank"), x.generation, x.code,
           x.message);
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

// What a system must know before it carries any of these. Compiled once: it
// takes the compiler seconds.
void AddMessageTypes(caf::actor_system_config& config);

using LoaderActor =
    caf::typed_actor<caf::replies_to<LoadRequest>::with<Loaded>>;

using CommActor = caf::typed_actor<
    caf::reacts_to<Launch>,       // -> Launched to the compute strand
    caf::reacts_to<drive_atom>>;  // there is work: drive the collectives

struct ComputePeers;  // below: it holds handles of the actors it is for
class StageLink;      // stage_link.h

using ComputeActor = caf::typed_actor<
    caf::reacts_to<std::shared_ptr<const ComputePeers>>,  // first of all
    caf::reacts_to<RunSteps>,     // -> StepsDone to the rank
    caf::reacts_to<Launched>,     // a collective is done, or enqueued
    caf::reacts_to<Transfer>,     // from a neighbouring stage
    caf::reacts_to<resume_atom>,  // to itself: go on after a look
    caf::reacts_to<drive_atom>,   // its device or a collective has come on
    caf::replies_to<snapshot_atom, std::int64_t>::with<SnapshotPtr>>;

using RankActor = caf::typed_actor<
    caf::reacts_to<Grant>,         // -> Progress, later
    caf::reacts_to<StepsDone>,     // from its compute strand
    caf::reacts_to<Evaluate>,      // -> Evaluated
    caf::reacts_to<TakeSnapshot>,  // -> SnapshotTaken
    caf::reacts_to<SaveShard>,     // -> ShardSaved, by its checkpoint writer
    caf::reacts_to<AskWaits>,      // -> RankWaits, to whoever asks
    caf::reacts_to<EndRank>>;

// Whoever a compute strand computes for: a rank, or an InferenceActor.
using StepsSink = caf::typed_actor<caf::reacts_to<StepsDone>>;

// Whom a compute strand talks to; known once all actors of the job exist.
struct ComputePeers {
  StepsSink rank;
  CommActor comm;
  std::shared_ptr<StageLink> stages;  // null where there is one
};
using ComputePeersPtr = std::shared_ptr<const ComputePeers>;

// What fails is reported as a Failure.
using CheckpointerActor =
    caf::typed_actor<caf::reacts_to<BeginCheckpoint>,    // -> CheckpointOpened
                     caf::reacts_to<WriteShard>,         // -> ShardSaved
                     caf::reacts_to<CommitCheckpoint>>;  // -> CheckpointSaved

using ReporterActor = caf::typed_actor<
    caf::reacts_to<std::vector<Report>>,  // -> reported: a credit back
    caf::reacts_to<FinishReports>>;       // the outcome

// Whoever hears of what ends an actor: the supervisor, or who stands for it.
using FailureSink = caf::typed_actor<caf::reacts_to<Failure>>;

// A model that is trained and spread over compute strands.
using InferenceCallPtr = std::shared_ptr<InferenceCall>;  // inference_call.h
using InferenceActor = caf::typed_actor<
    caf::reacts_to<InferenceCallPtr>,  // is answered by InferenceCall::Set()
    caf::reacts_to<StepsDone>,         // from its compute strands
    caf::reacts_to<Failure>,           // of one of them
    caf::reacts_to<watch_atom>>;       // to itself: is there silence?

using SupervisorActor = caf::typed_actor<
    caf::reacts_to<begin_atom>, caf::reacts_to<Progress>, caf::reacts_to<Alive>,
    caf::reacts_to<Evaluated>, caf::reacts_to<SnapshotTaken>,
    caf::reacts_to<CheckpointOpened>, caf::reacts_to<ShardSaved>,
    caf::reacts_to<CheckpointSaved>, caf::reacts_to<Failure>,
    caf::reacts_to<RankWaits>,      // of a rank that was asked
    caf::reacts_to<halt_atom>,      // a stop was requested
    caf::reacts_to<reported_atom>,  // from the reporter
    caf::reacts_to<watch_atom>,     // to itself: is there silence?
    caf::reacts_to<ask_atom>>;      // to itself: ask those who compute again

}  // namespace troupe::actors

#endif  // ACTORS_PROTOCOL_MESSAGES_H_
