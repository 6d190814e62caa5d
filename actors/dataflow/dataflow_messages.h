// The protocol of a dataflow's actors: stages, which hand each other tensors
// and credits, and in each process a conductor, which knows how the run ends.
//
//   self->send(reader, DataflowTensor{channel, number, tensor});
//   self->send(writer, DataflowCredit{channel});
//
// All of it stays in its process; between processes the same travels as parcels
// (channel_wire.h).

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

// To the reader of a channel, by its writer.
struct DataflowTensor {
  std::int32_t channel = 0;
  std::int64_t number = 0;
  nn::Tensor tensor;
};
// No more come than `count` in all.
struct DataflowEnd {
  std::int32_t channel = 0;
  std::int64_t count = 0;
};
// To the writer, by the reader: there is room for one more.
struct DataflowCredit {
  std::int32_t channel = 0;
};

// To the conductor.
struct DataflowStageDone {
  std::int32_t stage = 0;
  std::vector<ChannelUse> uses;
};
struct DataflowFailure {
  std::int32_t code = 0;  // absl::StatusCode
  std::string message;
};
// What another process says of itself, or what a fabric says of it.
struct DataflowNews {
  enum class Kind : std::uint8_t {
    kAlive,   // count: handlers that have returned there
    kDone,    // all its stages are
    kFailed,  // code, message
    kBye,     // it has heard how the run ended, and leaves
    kLost,    // message: by the fabric
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

// AddClusterMessageTypes() with these, too.
void AddDataflowMessageTypes(caf::actor_system_config& config);

using DataflowStageActor =
    caf::typed_actor<caf::reacts_to<DataflowRoutesPtr>,  // first of all
                     caf::reacts_to<DataflowTensor>,
                     caf::reacts_to<DataflowEnd>,
                     caf::reacts_to<DataflowCredit>,
                     caf::reacts_to<resume_atom>>;  // to itself: go on

using DataflowConductor = caf::typed_actor<
    caf::reacts_to<DataflowContextPtr>,  // the run begins
    caf::reacts_to<DataflowStageDone>, caf::reacts_to<DataflowFailure>,
    caf::reacts_to<DataflowNews>,
    caf::reacts_to<beat_atom>,    // to itself: leave at last
    caf::reacts_to<watch_atom>>;  // to itself: is there silence?

}  // namespace troupe::actors

#endif  // ACTORS_DATAFLOW_DATAFLOW_MESSAGES_H_
