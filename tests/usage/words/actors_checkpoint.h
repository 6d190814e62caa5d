// Declares names that the usage comments in actors/checkpoint/ leave
// undeclared.

#ifndef TESTS_USAGE_WORDS_ACTORS_CHECKPOINT_H_
#define TESTS_USAGE_WORDS_ACTORS_CHECKPOINT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/checkpoint/checkpoint.h"
#include "actors/checkpoint/trainer_state.h"
#include "actors/checkpoint/writer.h"
#include "base/files/file_system.h"
#include "data/batch_source.h"
#include "nlohmann/json.hpp"
#include "nn/autograd/context.h"
#include "nn/autograd/parameter.h"
#include "nn/kernels/kernels.h"
#include "nn/modules/module.h"
#include "pipeline/plan.h"

namespace troupe::actors::usage {

extern base::FileSystem& files;
extern const std::string dir, folder;
extern const Checkpoint checkpoint;
extern const TrainerState state;
extern const std::vector<CheckpointShard> shards;

namespace checkpoint_h {
extern nn::Parameter* parameter;
}

namespace claim_h {
void WriteCheckpoints();
}

namespace json_fields_h {
extern const nlohmann::json json;
}

namespace load_model_h {
extern const std::string path;
extern const std::unique_ptr<nn::Module> model;
extern const std::unique_ptr<nn::Kernels> kernels;
extern const nn::Tensor x;
}  // namespace load_model_h

namespace plan_file_h {
extern const pipeline::Plan plan;
}

namespace tensor_hash_h {
extern const nn::Tensor tensor;
extern const nn::TensorPart first_half, second_half;
}  // namespace tensor_hash_h

namespace trainer_state_h {
extern const data::BatchSource source;
}

namespace writer_h {
extern const std::int64_t step;
extern const CheckpointShard shard;
extern const std::vector<ShardSummary> summaries;
}  // namespace writer_h

}  // namespace troupe::actors::usage

#endif  // TESTS_USAGE_WORDS_ACTORS_CHECKPOINT_H_
