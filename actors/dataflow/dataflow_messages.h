// The protocol of a dataflow's actors: stages send each other tensors and
// credits, and a conductor in each process detects the end of the run.
//
//   self->send(reader, DataflowTensor{channel, number, tensor});
//   self->send(writer, DataflowCredit{channel});
//
// These messages stay in their process; between processes their contents travel
// as parcels (channel_wire.h).

#ifndef ACTORS_DATAFLOW_DATAFLOW_MESSAGES_H_
#define ACTORS_DATAFLOW_DATAFLOW_MESSAGES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/cluster/cluster_messages.h"
#include "actors/dataflow/dataflow.h"
#include "actors/dataflow/stage_run.h"

namespace troupe::actors {

// Sends a tensor to the reader of a channel.
struct DataflowTensor {
  std::int32_t channel = 0;
  std::int64_t number = 0;
  nn::Tensor tensor;
};
// Tells the reader that the channel has ended, after `count` tensors in all.
struct DataflowEnd {
  std::int32_t channel = 0;
  std::int64_t count = 0;
};
// Tells the writer that the channel has room for one more tensor.
struct DataflowCredit {
  std::int32_t channel = 0;
};

// Messages to the conductor.
struct DataflowStageDone {
  std::int32_t stage = 0;
  std::vector<ChannelUse> uses;
};
struct DataflowFailure {
  std::int32_t code = 0;  // absl::StatusCode
  std::string message;
};
// The state of another process, from its conductor or from the fabric.
struct DataflowNews {
  enum class Kind : std::uint8_t {
    kAlive,   // count: number of handler calls that have returned there
    kDone,    // all its stages are done
    kFailed,  // code, message
    kBye,     // it has received the run's result, and leaves
    kLost,    // message; sent by the fabric
  };
  std::int32_t process = 0;
  Kind kind = Kind::kAlive;
  std::int64_t count = 0;
  std::int32_t code = 0;
  std::string message;
};

struct DataflowContext;
class DataflowRoutes;
using DataflowContextPtr = std::shared_ptr<const DataflowContext>;
using DataflowRoutesPtr = std::shared_ptr<const DataflowRoutes>;

}  // namespace troupe::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::DataflowTensor)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::DataflowEnd)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::DataflowCredit)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::DataflowStageDone)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::DataflowFailure)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::DataflowNews)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::DataflowContextPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::DataflowRoutesPtr)

CAF_BEGIN_TYPE_ID_BLOCK(troupe_dataflow, caf::id_block::troupe_cluster::end)
CAF_ADD_TYPE_ID(troupe_dataflow, (troupe::actors::DataflowTensor))
CAF_ADD_TYPE_ID(troupe_dataflow, (troupe::actors::DataflowEnd))
CAF_ADD_TYPE_ID(troupe_dataflow, (troupe::actors::DataflowCredit))
CAF_ADD_TYPE_ID(troupe_dataflow, (troupe::actors::DataflowStageDone))
CAF_ADD_TYPE_ID(troupe_dataflow, (troupe::actors::DataflowFailure))
CAF_ADD_TYPE_ID(troupe_dataflow, (troupe::actors::DataflowNews))
CAF_ADD_TYPE_ID(troupe_dataflow, (troupe::actors::DataflowContextPtr))
CAF_ADD_TYPE_ID(troupe_dataflow, (troupe::actors::DataflowRoutesPtr))
CAF_END_TYPE_ID_BLOCK(troupe_dataflow)

namespace troupe::actors {

// Registers these messages, and those of AddClusterMessageTypes().
void AddDataflowMessageTypes(caf::actor_system_config& config);

using DataflowStageActor =
    caf::typed_actor<caf::reacts_to<DataflowRoutesPtr>,  // starts the stage
                     caf::reacts_to<DataflowTensor>,
                     caf::reacts_to<DataflowEnd>,
                     caf::reacts_to<DataflowCredit>,
                     caf::reacts_to<resume_atom>>;  // to itself: go on

using DataflowConductor = caf::typed_actor<
    caf::reacts_to<DataflowContextPtr>,  // starts the run
    caf::reacts_to<DataflowStageDone>, caf::reacts_to<DataflowFailure>,
    caf::reacts_to<DataflowNews>,
    caf::reacts_to<beat_atom>,    // to itself: the farewell time-out
    caf::reacts_to<watch_atom>>;  // to itself: check for progress

}  // namespace troupe::actors

#endif  // ACTORS_DATAFLOW_DATAFLOW_MESSAGES_H_
