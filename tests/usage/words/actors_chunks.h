// Declares names that the usage comments in actors/chunks/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_ACTORS_CHUNKS_H_
#define TESTS_USAGE_WORDS_ACTORS_CHUNKS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/chunks/chunk.h"
#include "actors/chunks/peer_memory.h"
#include "actors/chunks/saved_tensors.h"
#include "actors/chunks/static_uses.h"
#include "actors/chunks/step/loss_check.h"
#include "actors/chunks/step/loss_scaler.h"
#include "actors/chunks/step/step_loss.h"
#include "actors/chunks/use_marks.h"
#include "actors/spec/job_spec.h"
#include "comm/communicator.h"
#include "comm/shm/shared_memory.h"
#include "nn/arena/parameter_arena.h"
#include "nn/kernels/kernels.h"
#include "nn/optim/optimizer.h"
#include "pipeline/plan.h"

namespace troupe::actors::usage {

extern JobSpec spec;
extern const pipeline::Plan plan;
extern comm::Communicator* comm;
extern std::shared_ptr<nn::ParameterArena> arena;
extern const nn::Tensor scalars, stats;
extern const absl::Duration timeout;
extern const int k, rank;
extern std::int64_t step;

namespace peer_memory_h {
extern const std::shared_ptr<comm::SharedMemory> shared;
extern ChunkParameters::Setup setup;
}  // namespace peer_memory_h

namespace arena_layout_h {
extern const std::set<std::string> counted_elsewhere;
extern nn::Module* module;
}  // namespace arena_layout_h

namespace bucket_arenas_h {
extern const ArenaLayout layout;
extern const BucketArenas::Options options;
extern const comm::ReduceOp op;
}  // namespace bucket_arenas_h

namespace bucket_reductions_h {
extern const BucketReductions::Options options;
extern const BucketArenas& arenas;
}  // namespace bucket_reductions_h

namespace bucket_updates_h {
extern const BucketUpdates::Options options;
extern BucketArenas& arenas;
extern const BucketUpdates::MakeOptimizerFn make_optimizer;
extern const std::vector<nn::Parameter*> unused;
extern const bool optimizer_needs_all_buckets;
}  // namespace bucket_updates_h

namespace bucket_update_h {
extern const std::shared_ptr<nn::Kernels> kernels;
extern const std::shared_ptr<nn::Optimizer> optimizer;
extern const comm::ReduceOp op;
}  // namespace bucket_update_h

namespace chunk_h {
extern const Chunk::Setup setup;
extern Chunk::Listener& listener;
extern const StepBatches batches;
}  // namespace chunk_h

namespace chunk_parameters_h {
extern const ChunkParameters::Setup setup;
extern nn::Module* module;
}  // namespace chunk_parameters_h

namespace gradient_ledger_h {
extern ChunkParameters parameters;
extern StepTrace trace;
extern GradientLedger::Listener& listener;
extern nn::Tape tape;
extern nn::Kernels& kernels;
extern const nn::Tensor loss;
}  // namespace gradient_ledger_h

namespace loss_check_h {
extern const StepChecks checks;
}

namespace loss_reader_h {
extern const StepChecks checks;
extern nn::Kernels& kernels;
}  // namespace loss_reader_h

namespace loss_scaler_h {
extern nn::Kernels& kernels;
extern const LossScaler::Options options;
extern const nn::StepScalars values;
extern nn::Tensor scalars;
extern nn::BackwardPass backward;
extern const nn::Tensor loss;
}  // namespace loss_scaler_h

namespace memory_holders_h {
extern nn::Kernels& kernels;
extern const Chunk& chunk;
}  // namespace memory_holders_h

namespace model_batches_h {
extern nn::Kernels& kernels;
extern StepBatches loaded;
}  // namespace model_batches_h

namespace plain_reduction_h {
extern const nn::Tensor grads;
}

namespace rounded_reduction_h {
extern const GradientBucket bucket;
extern const nn::Tensor grads;
}  // namespace rounded_reduction_h

namespace saved_tensors_h {
extern nn::ParameterArena* arena;
extern nn::Optimizer* optimizer;
extern UpdateCounts counts;
extern const std::vector<nn::Buffer*> buffers;
extern const std::set<std::string> copies;
extern nn::Kernels& kernels;
extern const nn::WeightFile& weights;
extern const Checkpoint& checkpoint;
extern CheckpointShard shard;
}  // namespace saved_tensors_h

namespace staged_copy_h {
extern nn::Kernels& kernels;
extern const nn::Shape shape;
extern const nn::DType dtype;
extern const nn::Tensor loaded;
extern absl::Status status;
}  // namespace staged_copy_h

namespace static_uses_h {
extern std::optional<StaticUses> promise;
extern const UseMarks uses;
extern const std::vector<nn::Parameter*> unused_on_all_ranks;
extern const std::int64_t step;
}  // namespace static_uses_h

namespace step_loss_h {
extern nn::Kernels& kernels;
extern const Chunk& chunk;
extern const StepLoss::Options options;
void Update(const nn::Tensor& scalars);
}  // namespace step_loss_h

namespace step_trace_h {
extern const pipeline::Action action;
extern const pipeline::Action reduction;
void Run(const pipeline::Action& action);
}  // namespace step_trace_h

namespace update_counts_h {
extern const Checkpoint checkpoint;
extern const nn::ParameterArena arena;
extern const double updates;
extern nn::Optimizer* optimizer;
extern const nn::Tensor scalars;
extern const std::set<std::string> left_out;
extern nn::Kernels& kernels;
extern CheckpointShard shard;
}  // namespace update_counts_h

namespace update_scalars_h {
extern nn::Kernels& kernels;
extern const nn::Queue queue;
extern const nn::Tensor own;
extern const base::Event done;
void Update(const nn::Tensor& scalars);
}  // namespace update_scalars_h

namespace user_loss_h {
extern nn::Context& ctx;
extern const std::unique_ptr<nn::Module> module;
extern ModelBatches batches;
extern const int m;
extern const nn::Tensor x;
extern nn::Tensor stats;
}  // namespace user_loss_h

namespace use_marks_h {
extern ChunkParameters parameters;
extern nn::Kernels& kernels;
extern const int k;
extern comm::Communicator* comm;
extern const absl::Duration timeout;
}  // namespace use_marks_h

}  // namespace troupe::actors::usage

#endif  // TESTS_USAGE_WORDS_ACTORS_CHUNKS_H_
