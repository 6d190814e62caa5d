// The ways to lay out a configured run on its ranks, for mesh.auto and for
// `trainer plan --meshes`.
//
//   const actors::MeshRange range = MeshRangeOf(loaded);
//   actors::JobSpec spec = base;                    // of BuildSpec()
//   TROUPE_RETURN_IF_ERROR(LayOut(loaded, splits, files, choice, spec));
//
// Keys that the configuration sets stay: train.micro_batch_size, mesh.tp,
// mesh.schedule, mesh.virtual_stages, zero.stage and model.recompute...

#ifndef TOOLS_TRAINER_RUN_MESH_CHOICES_H_
#define TOOLS_TRAINER_RUN_MESH_CHOICES_H_

#include <string>

#include "absl/status/status.h"
#include "actors/spec/job_spec.h"
#include "actors/spec/open_mesh.h"
#include "base/files/file_system.h"
#include "data/registry.h"
#include "tools/trainer/config/config.h"

namespace troupe::tools {

// Returns what is compared.
actors::MeshRange MeshRangeOf(const LoadedConfig& loaded);

// Lays out `spec`, the job of `loaded`, as `choice`: sets its plan, its model
// and what is open of its pipeline. Errors: those of CheckConfig() and
// BuildSpec(), and
//   kInvalidArgument: the configuration sets another schedule.
absl::Status LayOut(const LoadedConfig& loaded, const data::DataSplits& splits,
                    base::FileSystem& files, const actors::MeshChoice& choice,
                    actors::JobSpec& spec);

// Returns what mesh.auto leaves to the job. `files` must outlive it.
actors::OpenMesh OpenMeshOf(const LoadedConfig& loaded,
                            const data::DataSplits& splits,
                            base::FileSystem& files);

// Returns the settings that lay out a run so: "--set mesh.dp=4 ...".
std::string MeshSettings(const LoadedConfig& loaded,
                         const actors::MeshChoice& mesh);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_RUN_MESH_CHOICES_H_
