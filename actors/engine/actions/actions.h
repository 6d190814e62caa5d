// The list of all kinds of actions that the step engine runs. A new kind is
// added here (actions.cc) and to the rows of pipeline/table/action_rules.cc.
//
//   Dispatcher dispatcher(options, parts, MakeActions(parts), inbox, losses,
//                         trace);

#ifndef ACTORS_ENGINE_ACTIONS_ACTIONS_H_
#define ACTORS_ENGINE_ACTIONS_ACTIONS_H_

#include "actors/engine/dispatcher.h"
#include "actors/engine/engine_parts.h"

namespace troupe::actors {

// Makes the object of each kind of action. `parts` outlives them.
StepActions MakeActions(const EngineParts& parts);

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_ACTIONS_ACTIONS_H_
