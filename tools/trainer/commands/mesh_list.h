// The list of `trainer plan --meshes`: the ways to lay out a run on its ranks,
// with the step that is predicted for each (actors/planning/mesh_search.h).
//
//   TROUPE_RETURN_IF_ERROR(
//       ShowMeshes(loaded, splits, options, files, write));

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

struct MeshListOptions {
  // Bytes a second that a rank sends to others; 0: measured between threads of
  // this process.
  double bandwidth = 0;
};

// Writes the list for the number of ranks in the configuration's mesh.
// mesh.memory_limit limits what fits; train.micro_batch_size, mesh.schedule,
// mesh.virtual_stages, zero.stage and model.recompute... stay as they are where
// they are set.
//   Errors: those of BuildSpec() and MeasureCosts().
absl::Status ShowMeshes(const LoadedConfig& loaded,
                        const data::DataSplits& splits,
                        const MeshListOptions& options, base::FileSystem& files,
                        const std::function<bool(absl::string_view)>& write);

// Returns the text of the list.
std::string MeshListText(const LoadedConfig& loaded,
                         const std::vector<actors::JudgedMesh>& meshes);

// Returns the settings that lay out a run so: "--set mesh.dp=4 ...".
std::string MeshSettings(const LoadedConfig& loaded,
                         const actors::MeshChoice& mesh);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_COMMANDS_MESH_LIST_H_
