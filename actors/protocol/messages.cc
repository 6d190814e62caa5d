#include "actors/protocol/messages.h"

#include "caf/actor_system_config.hpp"

namespace troupe::actors {

void AddMessageTypes(caf::actor_system_config& config) {
  config.add_message_types<caf::id_block::troupe>();
}

}  // namespace troupe::actors
