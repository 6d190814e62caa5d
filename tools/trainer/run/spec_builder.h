// Opens the data of a checked configuration, and builds the job that the actors
// run from both.
//
//   TROUPE_ASSIGN_OR_RETURN(data::DataSplits splits,
//                           OpenData(loaded, files, note));
//   TROUPE_ASSIGN_OR_RETURN(actors::JobSpec spec,
//                           BuildSpec(loaded, splits, files));

#ifndef TOOLS_TRAINER_RUN_SPEC_BUILDER_H_
#define TOOLS_TRAINER_RUN_SPEC_BUILDER_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "actors/spec/job_spec.h"
#include "base/files/file_system.h"
#include "data/registry.h"
#include "tools/trainer/config/config.h"

namespace troupe::tools {

// Shows a line to the user, which lacks its end.
using NoteFn = std::function<void(const std::string& line)>;

// Opens the data, and calls `note` with each sentence about files that were not
// read, or what was assumed of them (data::DataSplits::notes). `files` must
// outlive the data. Errors: those of data::OpenDataset(), with the keys that
// they blame.
absl::StatusOr<data::DataSplits> OpenData(const LoadedConfig& loaded,
                                          base::FileSystem& files,
                                          const NoteFn& note);

// Builds the spec; without splits.train, that of a job which only evaluates.
// `files` must outlive the job. The spec has no trace; the caller may set one.
//   kInvalidArgument: an epoch has no whole step, or the model does not take
//                     the samples that the files have; names the place.
absl::StatusOr<actors::JobSpec> BuildSpec(const LoadedConfig& loaded,
                                          const data::DataSplits& splits,
                                          base::FileSystem& files);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_RUN_SPEC_BUILDER_H_
