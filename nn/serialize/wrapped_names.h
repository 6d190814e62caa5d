// Names of parameters without the wrappers around a PyTorch model, each of
// which puts its own name before those of all that is inside.
//
//   NamesWithoutWrappers("_orig_mod.module.0.weight");
//   // {"_orig_mod.module.0.weight", "module.0.weight", "0.weight"}
//
// A module of the model itself may have such a name, too ("model.0.weight"), so
// that each name on the way may be the model's.

#ifndef NN_SERIALIZE_WRAPPED_NAMES_H_
#define NN_SERIALIZE_WRAPPED_NAMES_H_

#include <vector>

#include "absl/strings/string_view.h"

namespace troupe::nn {

// Limit on the wrappers that are removed from one name.
inline constexpr int kWrappersMax = 16;

// Returns `name`, and what remains of it as the outermost wrapper is removed
// again and again. The results point into `name`.
std::vector<absl::string_view> NamesWithoutWrappers(absl::string_view name);

}  // namespace troupe::nn

#endif  // NN_SERIALIZE_WRAPPED_NAMES_H_
