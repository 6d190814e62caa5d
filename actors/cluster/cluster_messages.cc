#include "actors/cluster/cluster_messages.h"

#include "caf/actor_system_config.hpp"

namespace troupe::actors {

void AddClusterMessageTypes(caf::actor_system_config& config) {
  AddMessageTypes(config);
  config.add_message_types<caf::id_block::troupe_cluster>();
}

}  // namespace troupe::actors
