// Declares names that the C++ of README.md and docs/ leaves undeclared, a
// namespace for each page.

#ifndef TESTS_USAGE_WORDS_PAGES_H_
#define TESTS_USAGE_WORDS_PAGES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "actors/checkpoint/load_model.h"
#include "actors/inference/inference_session.h"
#include "actors/job.h"
#include "actors/planning/measure_costs.h"
#include "actors/planning/mesh_choice.h"
#include "actors/sim/parameter_log.h"
#include "actors/sim/simulation.h"
#include "base/check.h"
#include "base/files/file_system.h"
#include "base/status_error.h"
#include "comm/fabric.h"
#include "comm/shm/shared_memory.h"
#include "gtest/gtest.h"
#include "nn/arena/parameter_arena.h"
#include "nn/autograd/context.h"
#include "nn/autograd/create.h"
#include "nn/autograd/guards.h"
#include "nn/autograd/var_math.h"
#include "nn/collectives.h"
#include "nn/kernels/step_scalars.h"
#include "nn/modules/conv2d.h"
#include "nn/modules/conv_transpose2d.h"
#include "nn/modules/embedding.h"
#include "nn/modules/linear.h"
#include "nn/modules/net.h"
#include "nn/modules/norm.h"
#include "nn/modules/pool2d.h"
#include "nn/modules/sequential.h"
#include "nn/modules/skip.h"
#include "nn/modules/tokens.h"
#include "nn/ops/activation.h"
#include "nn/ops/arithmetic.h"
#include "nn/optim/sgd.h"
#include "nn/tensor/tensor.h"
#include "pipeline/mesh.h"
#include "pipeline/table/schedule.h"
#include "pipeline/table/table_index.h"
#include "tests/pipeline/table_simulator.h"
#include "troupe/simulate.h"

namespace troupe::usage {

namespace collectives_md {
using comm::SharedMemory;
using nn::Collectives;
using nn::ReduceOp;
extern comm::FabricOptions options;
extern const nn::Shape shape;
extern const nn::DType dtype;
extern nn::Context& ctx;
extern const nn::Tensor sums;
extern absl::Status status;
extern actors::JobSpec spec;
}  // namespace collectives_md

namespace data_md {
extern actors::JobSpec spec;
}  // namespace data_md

namespace launching_md {
extern actors::JobSpec spec;
}

namespace parallelism_md {
using namespace nn;
extern actors::JobSpec spec;
extern Embedding& tokens;
extern Linear& head;
extern const std::unique_ptr<Sequential> model;
}  // namespace parallelism_md

namespace schedules_md {
using namespace pipeline;
using actors::Simulation;
using actors::SimulationOptions;
extern const std::vector<StepTable> tables;
extern const std::uint64_t seed;
extern const int stage;
extern actors::JobSpec spec;
}  // namespace schedules_md

namespace simulation_md {
using namespace actors;
extern const JobSpec spec;
extern const ParameterLog expected;
}  // namespace simulation_md

namespace using_md {
extern actors::JobSpec spec;
extern const nn::Tensor tokens;
extern const std::unique_ptr<nn::Sequential> model;
extern const nn::Window2d same, twice;
extern nn::Kernels& kernels;
extern nn::Allocator& memory;
extern const nn::Tensor images, labels;
extern nn::ParameterArena& arena;
extern nn::Sgd& sgd;
extern nn::Module& net;
}  // namespace using_md

}  // namespace troupe::usage

#endif  // TESTS_USAGE_WORDS_PAGES_H_
