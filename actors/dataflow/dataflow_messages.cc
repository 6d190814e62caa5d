#include "actors/dataflow/dataflow_messages.h"

#include "caf/actor_system_config.hpp"

namespace troupe::actors {

void AddDataflowMessageTypes(caf::actor_system_config& config) {
  AddClusterMessageTypes(config);
  config.add_message_types<caf::id_block::troupe_dataflow>();
}

}  // namespace troupe::actors
