// The list of `trainer plan --meshes`: the ways to lay out a run on its ranks,
// with the step that is predicted for each (actors/planning/mesh_search.h).
//
//   TROUPE_RETURN_IF_ERROR(ShowMeshes(loaded, splits, files, write));

#ifndef TOOLS_TRAINER_COMMANDS_MESH_LIST_H_
#define TOOLS_TRAINER_COMMANDS_MESH_LIST_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "actors/planning/mesh_search.h"
#include "base/files/file_system.h"
#include "data/dataset.h"
#include "tools/trainer/config/config.h"
#include "tools/trainer/run/spec_builder.h"

namespace troupe::tools {

// Writes the list for the number of ranks in the configuration's mesh.
// mesh.memory_limit limits what fits; mesh_choices.h says what else stays.
//   Errors: those of BuildSpec() and MeasureCosts().
absl::Status ShowMeshes(const LoadedConfig& loaded,
                        const data::DataSplits& splits, base::FileSystem& files,
                        const std::function<bool(absl::string_view)>& write);

// Returns the text of the list.
std::string MeshListText(const LoadedConfig& loaded,
                         const std::vector<actors::JudgedMesh>& meshes);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_COMMANDS_MESH_LIST_H_
