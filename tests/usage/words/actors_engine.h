// Declares names that the usage comments in actors/engine/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_ACTORS_ENGINE_H_
#define TESTS_USAGE_WORDS_ACTORS_ENGINE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "actors/engine/actions/actions.h"
#include "actors/engine/actions/findings.h"
#include "actors/engine/actions/tied_sums.h"
#include "actors/engine/engine_inputs.h"
#include "actors/engine/fiber/strand_fiber.h"
#include "actors/engine/loop/joint_backward.h"
#include "actors/engine/loop/loop_engine.h"
#include "actors/engine/loop/pipeline_engine.h"
#include "actors/engine/snapshot.h"
#include "actors/engine/step_runner.h"
#include "actors/setup/rank_context.h"
#include "actors/spec/job_spec.h"
#include "comm/communicator.h"
#include "nn/autograd/context.h"
#include "nn/kernels/kernels.h"
#include "nn/optim/sgd.h"
#include "pipeline/parameter_plan.h"
#include "pipeline/plan.h"
#include "pipeline/table/table_cursor.h"

namespace troupe::actors::usage {

extern comm::Communicator* comm;
extern const comm::Collective collective;
extern StrandWait& wait;

namespace actions_h {
extern const Dispatcher::Options options;
extern const EngineParts parts;
extern Inbox inbox;
extern StepLosses losses;
extern StepTrace trace;
}  // namespace actions_h

namespace bucket_events_h {
extern nn::Kernels& kernels;
extern const comm::Collective sum;
}  // namespace bucket_events_h

namespace dispatcher_h {
using actions_h::inbox;
using actions_h::losses;
using actions_h::options;
using actions_h::parts;
using actions_h::trace;
extern StepBatches batches;
extern const std::int64_t step;
extern const int action;
extern const base::Event done;
}  // namespace dispatcher_h

namespace bucket_hook_h {
extern LoopEngine* const engine;
}

namespace hook_action_h {
extern std::vector<std::unique_ptr<StepAction>> actions;
extern const EngineParts parts;
extern BucketHook& hook;
}  // namespace hook_action_h

namespace launch_order_h {
extern const int buckets, leader;
extern nn::Kernels& kernels;
extern const std::vector<int> complete;
extern const absl::Duration timeout;
extern pipeline::LoopTableOptions table;
}  // namespace launch_order_h

namespace joint_backward_h {
extern LoopEngine generator, discriminator;
extern nn::Tape tape;
extern const nn::Tensor loss;
extern const double count;
}  // namespace joint_backward_h

namespace agreed_order_h {
extern const int buckets, leader;
extern nn::Kernels& kernels;
extern LoopDispatcher dispatcher;
extern Reducer reducer;
extern const std::int64_t step;
extern const std::vector<int> complete;
}  // namespace agreed_order_h

namespace agreed_uses_h {
extern ChunkParameters parameters;
extern nn::Kernels& kernels;
extern Reducer reducer;
extern const std::int64_t step;
extern const nn::Tensor scalars;
extern const nn::Queue queue;
absl::Status Await(const AgreedUses& uses);
}  // namespace agreed_uses_h

namespace loop_dispatcher_h {
extern OwnedParts parts;
}

namespace loop_state_h {
extern const nn::Optimizer* const optimizer;
}

namespace side_collective_h {
extern const comm::Event ready;
extern const std::int64_t step;
extern Reducer reducer;
}  // namespace side_collective_h

namespace loop_engine_h {
extern const pipeline::Plan plan;
extern const std::unique_ptr<nn::Module> model;
extern const std::shared_ptr<nn::Kernels> kernels;
extern const RankGroups groups;
extern EngineHost& host;
extern StrandWait& wait;
extern const std::vector<nn::Tensor> batches;
extern nn::Tensor (*Loss)(nn::Context& ctx, const nn::Tensor& output);
extern nn::Context ctx;
extern nn::Tape tape;
extern const double count;
}  // namespace loop_engine_h

namespace pipeline_engine_h {
extern const JobSpec spec;
extern const pipeline::Plan plan;
extern const std::shared_ptr<nn::Kernels> kernels;
extern const RankGroups groups;
extern EngineHost& host;
extern StrandWait& wait;
extern std::vector<StepBatches> steps;
}  // namespace pipeline_engine_h

namespace engine_inputs_h {
extern const OwnedParts parts;
extern const pipeline::Plan plan;
extern const pipeline::StepTable table;
extern const int rank, c;
}  // namespace engine_inputs_h

namespace engine_parts_h {
extern EngineParts parts;
extern const pipeline::Action action;
}  // namespace engine_parts_h

namespace findings_h {
extern const EngineParts parts;
extern StepInFlight step;
}  // namespace findings_h

namespace graph_choice_h {
void RunStep(GraphChoice::Way way);
void Tell(const std::string& line);
}  // namespace graph_choice_h

namespace graph_inputs_h {
extern nn::Kernels& kernels;
extern const StepBatches batches;
extern const std::int64_t step;
void Forward(const nn::Tensor& inputs, const nn::Tensor& targets);
}  // namespace graph_inputs_h

namespace inbox_h {
extern const EngineParts parts;
extern Dispatcher dispatcher;
extern const Transfer transfer;
}  // namespace inbox_h

namespace value_turns_h {
extern const pipeline::StepTable table;
extern const pipeline::Plan plan;
extern const int rank;
extern const StepInFlight& step;
extern const nn::Parameter& parameter;
extern const int k;
}  // namespace value_turns_h

namespace layer_collectives_h {
extern const RankGroups groups;
extern nn::Kernels& kernels;
extern StrandFiber fiber;
extern Chunk::Setup chunk;
}  // namespace layer_collectives_h

namespace owned_parts_h {
extern const EngineSetup setup;
extern StrandWait* const wait;
extern TraceSink* const sink;
extern std::unique_ptr<RankDevice> device;
extern EngineHost* const host;
extern const Dispatcher::Options options;
extern StepLosses losses;
extern std::unique_ptr<Chunk> chunk;
}  // namespace owned_parts_h

namespace predicted_outputs_h {
extern PredictedOutputs outputs;
extern nn::Kernels& kernels;
extern const Chunk& chunk;
}  // namespace predicted_outputs_h

namespace queue_work_h {
extern nn::Kernels& kernels;
extern comm::Communicator* world;
extern bool on_device;
}  // namespace queue_work_h

namespace quiet_wait_h {
extern StrandFiber fiber;
}

namespace rank_device_h {
extern const RankDevice::Options options;
}

namespace rank_groups_h {
using pipeline::GroupId;
extern const RankContext context;
extern const absl::Status why;
}  // namespace rank_groups_h

namespace reducer_h {
using pipeline::GroupId;
extern const RankGroups groups;
extern Reducer::Launcher& launcher;
extern const int action;
extern const comm::Event ready;
}  // namespace reducer_h

namespace share_state_h {
extern const pipeline::Plan plan;
extern const int rank;
extern const EngineParts parts;
extern const std::int64_t step;
}  // namespace share_state_h

namespace replica_hash_h {
extern const EngineParts parts;
}

namespace snapshot_h {
extern const EngineParts parts;
extern LossScaler* scaler;
extern const std::int64_t step;
extern const Checkpoint checkpoint;
}  // namespace snapshot_h

namespace step_action_h {
using pipeline::ActionKind;
extern const EngineParts parts;
extern Dispatcher dispatcher;
extern StepInFlight step;
extern const int id;
}  // namespace step_action_h

namespace step_graph_h {
extern nn::Kernels& kernels;
extern const StepGraphs::Options options;
extern const StepBatches batches;
extern const std::int64_t step;
void Begin(const StepBatches& batches);
absl::Status Walk();
}  // namespace step_graph_h

namespace step_in_flight_h {
extern const pipeline::StepTable table;
extern StepTrace trace;
extern StepLosses losses;
}  // namespace step_in_flight_h

namespace step_recorder_h {
extern const EngineParts parts;
extern Dispatcher& dispatcher;
extern StepTrace trace;
extern std::optional<StepRecorder> recorder;
extern StepBatches batches;
extern const std::int64_t step;
}  // namespace step_recorder_h

namespace step_runner_h {
extern std::int64_t step;
extern const StepRunner::Setup setup;
extern StepRunner::Host& host;
extern std::vector<StepBatches> steps;
}  // namespace step_runner_h

namespace strand_fiber_h {
extern const StrandFiber::Options options;
void RunSteps();
void End();
}  // namespace strand_fiber_h

namespace strand_wait_h {
extern pipeline::TableCursor& cursor;
bool RunWhatMay();
}  // namespace strand_wait_h

namespace tied_sums_h {
extern const pipeline::Plan plan;
extern const int rank, id;
extern const pipeline::Action action;
extern pipeline::TableCursor cursor;
void AddUp(const std::vector<TiedSums::Copy>& copies);
void AllReduce(pipeline::GroupId group);
}  // namespace tied_sums_h

}  // namespace troupe::actors::usage

#endif  // TESTS_USAGE_WORDS_ACTORS_ENGINE_H_
