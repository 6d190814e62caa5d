// The list of all kinds of actions that the step engine runs: what a new kind
// is added to, beside its row in pipeline/action_rules.cc.
//
//   Dispatcher dispatcher(options, parts, MakeActions(parts), inbox, losses,
//                         trace);

#ifndef ACTORS_ENGINE_ACTIONS_ACTIONS_H_
#define ACTORS_ENGINE_ACTIONS_ACTIONS_H_

#include "actors/engine/dispatcher.h"
#include "actors/engine/engine_parts.h"

namespace troupe::actors {

// `parts` outlives them.
StepActions MakeActions(const EngineParts& parts);

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_ACTIONS_ACTIONS_H_
