// Builds the job that the actors run from a checked configuration and its data.
//
//   TROUPE_ASSIGN_OR_RETURN(data::DataSplits splits,
//                           data::OpenDataset(loaded.config.data));
//   TROUPE_ASSIGN_OR_RETURN(actors::JobSpec spec,
//                           BuildSpec(loaded, splits, files));

#ifndef TOOLS_TRAINER_RUN_SPEC_BUILDER_H_
#define TOOLS_TRAINER_RUN_SPEC_BUILDER_H_

#include "absl/status/statusor.h"
#include "actors/spec/job_spec.h"
#include "base/file_system.h"
#include "data/registry.h"
#include "tools/trainer/config/config.h"

namespace troupe::tools {

// Builds the spec. `files` must outlive the job. The spec has no trace; the
// caller may set one.
//   kInvalidArgument: an epoch has no whole step, or the model does not take
//                     the samples that the files have; names the place.
absl::StatusOr<actors::JobSpec> BuildSpec(const LoadedConfig& loaded,
                                          const data::DataSplits& splits,
                                          base::FileSystem& files);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_RUN_SPEC_BUILDER_H_
