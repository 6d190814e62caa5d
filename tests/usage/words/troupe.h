// Declares names that the usage comments in troupe/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_TROUPE_H_
#define TESTS_USAGE_WORDS_TROUPE_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "actors/engine/loop/loop_engine.h"
#include "actors/engine/loop/pipeline_engine.h"
#include "base/files/file_system.h"
#include "data/dataset.h"
#include "data/rank_batches.h"
#include "gtest/gtest.h"
#include "nn/autograd/context.h"
#include "nn/autograd/create.h"
#include "nn/autograd/var.h"
#include "nn/autograd/var_math.h"
#include "nn/models/models.h"
#include "nn/modules/linear.h"
#include "nn/modules/module.h"
#include "nn/modules/net.h"
#include "nn/ops/loss.h"
#include "nn/optim/lr_schedule.h"
#include "nn/optim/sgd.h"
#include "nn/tensor/allocator.h"
#include "troupe/comm_hook.h"
#include "troupe/data_parallel.h"
#include "troupe/ddp.h"
#include "troupe/devices/device_exchange.h"
#include "troupe/devices/device_line.h"
#include "troupe/engine.h"
#include "troupe/internal/attached_optimizer.h"
#include "troupe/internal/call_error.h"
#include "troupe/internal/join_membership.h"
#include "troupe/internal/join_notice.h"
#include "troupe/internal/loop_rule.h"
#include "troupe/internal/master_values.h"
#include "troupe/internal/model_layout.h"
#include "troupe/internal/optimizable_core.h"
#include "troupe/internal/started_collectives.h"
#include "troupe/loader.h"
#include "troupe/optimizer.h"
#include "troupe/pipeline_parallel.h"
#include "troupe/plateau.h"
#include "troupe/profile/op_profile.h"
#include "troupe/profile/op_recorder.h"
#include "troupe/profiler.h"
#include "troupe/program.h"
#include "troupe/simulate.h"
#include "troupe/stages/pipeline_plan.h"
#include "troupe/stages/stage_messages.h"
#include "troupe/state.h"
#include "troupe/trainer.h"
#include "troupe/trainer/process_ranks.h"
#include "troupe/trainer/trainer_placement.h"
#include "troupe/work.h"

namespace troupe::usage {

using nn::Randn;
using nn::Var;

extern nn::Context& ctx;
extern nn::Module* const model;

namespace attached_optimizer_h {
extern const std::function<std::unique_ptr<nn::Optimizer>()> make;
extern const AttachedOptimizer::UseRate use;
extern Rank& rank;
extern actors::LoopEngine& engine;
extern const nn::Parameter& parameter;
extern const SavedModel::ReadFn read;
extern nn::Kernels& kernels;
}  // namespace attached_optimizer_h

namespace batch_reader_h {
extern const data::DatasetPtr dataset;
extern nn::Allocator& allocator;
extern data::RankBatches rank_batches;
void Use(const data::Batch& batch);
}  // namespace batch_reader_h

namespace buffer_sync_h {
extern Group& group;
extern nn::Kernels& kernels;
extern nn::Module& module;
}  // namespace buffer_sync_h

namespace loader_h {
extern const LoaderEnv env;
extern const data::DatasetPtr train;
}  // namespace loader_h

namespace replace_file_h {
extern base::FileSystem& files;
extern const std::string path, text;
}  // namespace replace_file_h

namespace data_parallel_h {
struct Toy : nn::Net {
  Var Forward(Var x) override { return x; }
};
extern Rank& rank;
extern DataLoader& loader;
}  // namespace data_parallel_h

namespace device_exchange_h {
extern ModelCore& core;
extern Group& group;
extern const Var x;
extern const Shape shape;
extern const DType dtype;
}  // namespace device_exchange_h

namespace device_line_h {
extern actors::ProgramRank& strand;
extern DeviceReplicas& replicas;
void Use(DeviceReplicas& replicas);
}  // namespace device_line_h

namespace model_layout_h {
extern Rank& rank;
extern Group& group;
extern nn::Module& module;
}  // namespace model_layout_h

namespace ddp_h {
struct Toy : nn::Net {
  Var Forward(Var x) override { return x; }
};
extern Rank& rank;
extern DataLoader& loader;
extern const Var x, y;
}  // namespace ddp_h

namespace option_error_h {
extern const TrainerOptions options;
}

namespace portion_h {
extern const TrainerOptions options;
extern const data::DatasetPtr val;
}  // namespace portion_h

namespace predict_step_h {
extern Task task;
}

namespace predictions_h {
extern Trainer& trainer;
extern const Task task;
extern const data::DatasetPtr test;
}  // namespace predictions_h

namespace prediction_run_h {
extern const TrainerOptions options;
extern const Task task;
extern const data::DatasetPtr test;
}  // namespace prediction_run_h

namespace evaluation_job_h {
extern const TrainerOptions options;
extern const Task task;
extern const data::DatasetPtr test;
}  // namespace evaluation_job_h

namespace process_ranks_h {
extern const TrainerOptions options;
}

namespace trainer_h {
extern const data::DatasetPtr train, val, test;
void Upload(const std::string& folder);
}  // namespace trainer_h

namespace trainer_job_h {
extern const TrainerOptions options;
extern const Task task;
extern const data::DatasetPtr train, val;
}  // namespace trainer_job_h

namespace trainer_options_h {
extern const data::DatasetPtr train, val;
}  // namespace trainer_options_h

namespace trainer_placement_h {
extern const TrainerOptions options;
extern actors::JobSpec spec;
}  // namespace trainer_placement_h

namespace engine_h {
struct Net : nn::Net {
  Var Forward(Var x) override { return x; }
};
extern Rank& rank;
extern DataLoader& loader;
}  // namespace engine_h

namespace join_h {
extern const DDP& ddp;
extern const DDP& net_g;
extern const DDP& net_d;
extern const std::vector<Var> inputs;
extern const Var y;
}  // namespace join_h

namespace join_membership_h {
extern CallObserver& observer;
extern const ActiveRanks ranks;
extern nn::Context& context;
extern nn::BackwardRoot root;
}  // namespace join_membership_h

namespace gather_numbers_h {
extern Rank& rank;
extern Group& group;
extern const std::int64_t steps, layout;
extern const int r;
}  // namespace gather_numbers_h

namespace comm_hook_h {
extern DDP& ddp;
extern Rank& rank;
}  // namespace comm_hook_h

namespace model_h {
extern Rank& rank;
extern const Var x, y;
}  // namespace model_h

namespace loop_rule_h {
extern const AdamOptions options;
}

namespace master_values_h {
extern const nn::Parameter& parameter;
extern const SavedModel::ReadFn read;
extern nn::Kernels& kernels;
extern const actors::ChunkParameters& parameters;
extern const nn::ParameterArena& arena;
extern const nn::ArenaRange range;
}  // namespace master_values_h

namespace optimizer_h {
extern const Trainable& model;
extern const Trainable& classifier;
extern const Var loss;
extern DataLoader& loader;
extern const int epochs;
extern Optimizer& sgd;
}  // namespace optimizer_h

namespace optimizable_core_h {
extern const Optimizable& model;
extern const nn::SgdOptions options;
}  // namespace optimizable_core_h

namespace pipeline_parallel_h {
extern const data::DatasetPtr digits;
extern Rank& rank;
extern PipelineParallel& model;
extern Saved& sgd;
}  // namespace pipeline_parallel_h

namespace pipeline_plan_h {
extern Rank& rank;
extern const actors::JobModel& make;
extern const PipelineOptions& options;
}  // namespace pipeline_plan_h

namespace plateau_h {
extern Optimizer& sgd;
extern const Var loss;
}  // namespace plateau_h

namespace profiler_h {
extern DataLoader& loader;
extern const Trainable& model;
extern Sgd& sgd;
extern Rank& rank;
}  // namespace profiler_h

namespace op_recorder_h {
extern Rank& rank;
}

namespace op_profile_h {
extern OpRecorder& recorder;
}

namespace simulate_h {
void Run(Rank& rank);
}

namespace stage_messages_h {
extern Rank& rank;
extern const pipeline::Plan& plan;
extern const std::int64_t step;
extern const nn::TensorList tensors;
extern actors::PipelineEngine engine;
extern std::vector<actors::StartedIn> started;
}  // namespace stage_messages_h

namespace started_collectives_h {
extern Rank& rank;
extern const std::int64_t bytes, step;
extern const int action;
extern const std::shared_ptr<comm::Communicator> group;
extern const comm::Collective collective;
extern const comm::Event after;
extern const bool on_device;
extern actors::LoopEngine engine;
}  // namespace started_collectives_h

namespace work_h {
extern Rank& rank;
extern const Trainable& model;
extern const Var sums, x, into;
void GoOn();
}  // namespace work_h

namespace call_error_h {
extern const actors::CallPlace place;
extern const absl::Status status;
}  // namespace call_error_h

namespace state_h {
extern const Trainable& model;
extern Saved& sgd;
extern const int rank;
}  // namespace state_h

}  // namespace troupe::usage

#endif  // TESTS_USAGE_WORDS_TROUPE_H_
