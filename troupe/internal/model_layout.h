// Compares the models of the ranks, or devices, that train replicas of one.
//
//   CompareModels(rank, group, module, "DistributedDataParallel");
//
// Errors: base::StatusError. Threads: the rank's own.

#ifndef TROUPE_INTERNAL_MODEL_LAYOUT_H_
#define TROUPE_INTERNAL_MODEL_LAYOUT_H_

#include "nn/modules/module.h"
#include "troupe/group.h"
#include "troupe/rank.h"

namespace troupe {

// Throws if the names, shapes or dtypes of what the modules train and save
// differ in the group, whose ranks all call it. `call` is a literal: the call
// that errors name.
void CompareModels(Rank& rank, Group& group, nn::Module& module,
                   const char* call);

}  // namespace troupe

#endif  // TROUPE_INTERNAL_MODEL_LAYOUT_H_
