// Declares names that the usage comments in actors/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_ACTORS_H_
#define TESTS_USAGE_WORDS_ACTORS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "actors/caf/caf.h"
#include "actors/caf/thread_supply.h"
#include "actors/checkpoint/load_model.h"
#include "actors/checkpoint/trainer_state.h"
#include "actors/checkpoint/writer.h"
#include "actors/chunks/chunk.h"
#include "actors/engine/step_runner.h"
#include "actors/job.h"
#include "actors/planning/measure_costs.h"
#include "actors/planning/mesh_choice.h"
#include "actors/program/call_note.h"
#include "actors/program/program_rank.h"
#include "actors/program/program_spec.h"
#include "actors/protocol/messages.h"
#include "actors/protocol/report_queue.h"
#include "actors/setup/process_context.h"
#include "actors/setup/rank_context.h"
#include "actors/setup/rank_setup.h"
#include "actors/setup/roster.h"
#include "actors/setup/run_span.h"
#include "actors/setup/running_job.h"
#include "actors/spec/job_spec.h"
#include "actors/step_seconds.h"
#include "actors/strands/fabric_stage_link.h"
#include "actors/strands/loader.h"
#include "actors/strands/stage_link.h"
#include "actors/supervision/evaluation_track.h"
#include "actors/supervision/saving.h"
#include "actors/supervision/spawn_crew.h"
#include "actors/supervision/supervisor.h"
#include "actors/tracing/trace.h"
#include "base/cpu_cores.h"
#include "base/files/file_system.h"
#include "comm/communicator.h"
#include "data/registry.h"
#include "nn/arena/parameter_arena.h"
#include "nn/autograd/var_math.h"
#include "nn/kernels/kernel_choices.h"
#include "nn/kernels/kernels.h"
#include "nn/models/models.h"
#include "nn/modules/linear.h"
#include "nn/ops/loss.h"
#include "nn/optim/sgd.h"
#include "pipeline/plan.h"
#include "pipeline/table/table_cursor.h"

namespace troupe::actors::usage {

extern JobSpec spec;
extern const pipeline::Plan plan;
extern base::FileSystem& files;
extern comm::Communicator* comm;
extern const comm::Collective collective;
extern std::shared_ptr<nn::ParameterArena> arena;
extern const nn::Tensor scalars, stats;
extern const absl::Duration timeout;
extern const int k, rank, ranks;
extern std::int64_t step;
extern const pipeline::Action action;
extern JobObserver* observer;
extern JobResult result;
extern absl::Status status;
extern const data::DataSplits splits;

namespace current_wait_h {
extern comm::Communicator& group;
extern const std::chrono::steady_clock::time_point now;
void AwaitNews();
void Abort(comm::Communicator* group);
}  // namespace current_wait_h

namespace job_fields_h {
class MyOptimizer : public nn::Sgd {
 public:
  MyOptimizer() : nn::Sgd({}) {}
};
}  // namespace job_fields_h

// Variables that the code of an actor, or the code that spawns one, can use.
extern caf::actor_system& system;
extern LoaderActor::stateful_pointer<LoaderState> self;
extern const RankContextPtr context;
extern const ProcessContextPtr process;
extern std::shared_ptr<const Checkpoint> checkpoint;
extern const SupervisorActor supervisor;
extern ThreadSupply* threads;

namespace actor_timeout_h {
extern const SupervisorState::Self self;
}

namespace boundary_trace_h {
extern const RunSpan span;
}

namespace calibrate_h {
extern pipeline::PlanOptions options;
extern const int ranks_here;
}  // namespace calibrate_h

namespace checkpoint_folder_h {
extern const std::string mark;
}

namespace division_checks_h {
extern const JobSpec spec;
extern const pipeline::PlanOptions options;
extern const std::unique_ptr<nn::Optimizer> optimizer;
extern const std::unique_ptr<nn::Kernels> kernels;
}  // namespace division_checks_h

namespace evaluation_bits_h {
extern CommitCheckpoint commit;
extern TrainerState state;
extern const EvaluationTrack track;
}  // namespace evaluation_bits_h

namespace evaluation_run_h {
extern const LoaderActor loader;
extern const ComputeActor compute;
extern Loaded loaded;
extern const std::int64_t granted;
extern const StepsDone done;
void Report(const Evaluated& evaluated);
template <typename Actor, typename Message>
void Send(const Actor& to, const Message& message);
}  // namespace evaluation_run_h

namespace inference_call_h {
extern const std::vector<nn::Tensor> inputs;
extern const InferenceActor model;
}  // namespace inference_call_h

namespace inference_session_h {
extern const nn::Tensor tokens;
}

namespace mesh_search_h {
extern const JobSpec base;
}

namespace pipeline_choice_h {
pipeline::CutOptions OptionsOf(const pipeline::PlanOptions& plan);
}

namespace job_h {
extern JobObserver& observer;
}

namespace load_window_h {
extern const LoaderActor loader;
extern const ComputeActor compute;
extern Loaded loaded;
extern const LoadRequest request;
extern const std::int64_t granted;
template <typename Actor, typename Message>
void Send(const Actor& to, Message message);
}  // namespace load_window_h

namespace roster_h {
extern const std::vector<Member> members;
}

namespace running_job_h {
extern const JobSpec spec;
extern JobObserver* observer;
absl::StatusOr<std::unique_ptr<RunningJob>> StartClusterJob(
    const JobSpec& spec, JobObserver* observer);
}  // namespace running_job_h

namespace dtype_choice_h {
std::unique_ptr<nn::Module> MakeMyModel(nn::DType dtype);
std::unique_ptr<nn::Optimizer> MakeMyOptimizer(nn::DType dtype);
}  // namespace dtype_choice_h

namespace predict_h {
using nn::DType;
extern const Checkpoint saved;
extern const std::unique_ptr<nn::Module> model;
extern const std::unique_ptr<nn::Kernels> kernels;
}  // namespace predict_h

namespace process_links_h {
extern const std::vector<Member> members;
void Start(int rank);
}  // namespace process_links_h

namespace rank_context_h {
using pipeline::GroupId;
extern const ProcessContext process;
}  // namespace rank_context_h

namespace report_queue_h {
extern const std::vector<StepReport> reports;
extern const EvaluationReport evaluation;
void HoldGrants();
}  // namespace report_queue_h

namespace resume_h {
void BeginAt(std::int64_t step);
}

namespace run_span_h {
struct Process {
  RunSpan span;
};
extern const Process process;
extern TrainerState state;
}  // namespace run_span_h

namespace settings_h {
extern TrainerState state;
extern const Checkpoint checkpoint;
}  // namespace settings_h

namespace stage_link_h {
extern StageLink& link;
extern Transfer transfer;
}  // namespace stage_link_h

namespace status_error_h {
extern const caf::error error;
}

namespace drive_calls_h {
extern const CommActor strand;
extern comm::Communicator& group;
}  // namespace drive_calls_h

namespace strand_guard_h {
extern const std::int32_t generation;
}

namespace test_hooks_h {
extern std::map<int, nn::Tensor> seen;
nn::Tensor CopyOf(const nn::Tensor& values);
}  // namespace test_hooks_h

namespace thread_supply_h {
struct Lane {
  void Run();
};
extern Lane& lane;
}  // namespace thread_supply_h

namespace trace_json_h {
extern const TraceEvent event;
}

namespace fabric_stage_link_h {
extern const ProcessContext& process;
extern const std::vector<ComputeActor> computes;
extern const std::vector<int> stage_ranks;
extern const std::shared_ptr<StageLink> local;
extern Transfer transfer;
}  // namespace fabric_stage_link_h

namespace call_note_h {
extern CallNote note;
}

namespace group_makers_h {
extern const JobSpec spec;
}

namespace program_device_h {
extern const ProgramSpec spec;
extern const std::shared_ptr<nn::KernelChoices> choices;
extern const std::function<void(const base::Event&)> wait;
extern const std::function<void()> wakeup;
extern const std::shared_ptr<comm::Communicator> group;
extern const base::Event event;
}  // namespace program_device_h

namespace program_groups_h {
extern const int rank;
}

namespace program_links_h {
extern const ProgramSpec spec;
extern caf::actor_system& system;
}  // namespace program_links_h

namespace program_outcome_h {
extern const absl::Status status;
}

namespace program_messages_h {
extern nn::Kernels& kernels;
extern comm::Communicator& group;
extern const nn::Tensor tensor;
extern absl::StatusOr<base::Event> event;
}  // namespace program_messages_h

namespace program_rank_h {
std::vector<int> AllRanks(const ProgramRank& self);
}

namespace program_spec_h {
absl::Status Train(ProgramRank& self);
}

namespace run_program_h {
absl::Status Train(ProgramRank& self);
}

namespace rank_setup_h {
extern const std::shared_ptr<ProcessContext> process;
extern const nn::Device device;
}  // namespace rank_setup_h

namespace wait_report_h {
extern const RankContextPtr context;
}

}  // namespace troupe::actors::usage

#endif  // TESTS_USAGE_WORDS_ACTORS_H_
