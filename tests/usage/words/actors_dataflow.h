// Declares names that the usage comments in actors/dataflow/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_ACTORS_DATAFLOW_H_
#define TESTS_USAGE_WORDS_ACTORS_DATAFLOW_H_

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "actors/dataflow/channel_wire.h"
#include "actors/dataflow/conductor.h"
#include "actors/dataflow/dataflow.h"
#include "actors/dataflow/dataflow_context.h"
#include "actors/dataflow/dataflow_messages.h"
#include "actors/dataflow/dataflow_report.h"
#include "actors/dataflow/model_part.h"
#include "actors/dataflow/run_dataflow.h"
#include "actors/dataflow/simulate_dataflow.h"
#include "actors/dataflow/stage_run.h"
#include "comm/fabric.h"
#include "gtest/gtest.h"
#include "nn/modules/linear.h"
#include "nn/optim/sgd.h"
#include "pipeline/partition.h"

namespace troupe::actors::usage {

extern const nn::Tensor tensor;
extern caf::actor_system& system;
extern DataflowStageActor::stateful_pointer<int> self;
extern const int channel;
Dataflow MyFlow();

namespace channel_wire_h {
extern comm::Fabric& fabric;
extern const comm::Parcel parcel;
extern const int to;
}  // namespace channel_wire_h

namespace dataflow_h {
struct Reader {
  absl::StatusOr<std::optional<nn::Tensor>> Next();
};
struct Mean {
  absl::Status Add(const nn::Tensor& scores);
  absl::Status Print();
};
absl::StatusOr<std::unique_ptr<Reader>> OpenReader();
std::unique_ptr<Mean> MakeMean();
absl::StatusOr<nn::Tensor> Score(const nn::Tensor& images);
}  // namespace dataflow_h

namespace dataflow_context_h {
extern const Dataflow flow;
extern const DataflowConductor conductor;
}  // namespace dataflow_context_h

namespace dataflow_messages_h {
extern const std::int64_t number;
extern const DataflowStageActor reader, writer;
}  // namespace dataflow_messages_h

namespace dataflow_report_h {
extern const DataflowReport report;
void Print(const std::string& name, std::int64_t tensors, int in_flight_max);
}  // namespace dataflow_report_h

namespace model_part_h {
extern const nn::SgdOptions sgd;
extern const nn::Tensor x, dy, targets;
extern ModelPartOptions options;
extern std::unique_ptr<ModelPart> part;
std::unique_ptr<nn::Module> MakeModel();
}  // namespace model_part_h

namespace run_dataflow_h {
extern const ClusterOptions cluster;
}

namespace stage_run_h {
extern const std::shared_ptr<const Dataflow> flow;
extern StageRun::Host& host;
}  // namespace stage_run_h

}  // namespace troupe::actors::usage

#endif  // TESTS_USAGE_WORDS_ACTORS_DATAFLOW_H_
