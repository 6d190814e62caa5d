// From a checked configuration and its data to the job that the actors run.
//
//   TROUPE_ASSIGN_OR_RETURN(data::DataSplits splits,
//                           data::OpenDataset(DatasetOptionsOf(config.data)));
//   TROUPE_ASSIGN_OR_RETURN(RunStart start,
//                           FindRunStart(loaded, *splits.train, files));
//   TROUPE_ASSIGN_OR_RETURN(actors::JobSpec spec,
//                           BuildSpec(loaded, splits, start, files));

#ifndef TOOLS_TRAINER_SPEC_BUILDER_H_
#define TOOLS_TRAINER_SPEC_BUILDER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "actors/job_spec.h"
#include "data/registry.h"
#include "data/sampler.h"
#include "nn/serialize/file_system.h"
#include "tools/trainer/config.h"

namespace troupe::tools {

// Where a run begins in its data: at the start, or at the checkpoint that it
// goes on from, which may be of another batch size.
struct RunStart {
  std::int64_t step = 0;  // committed before the run
  data::Sampler sampler;  // its batch 0 is that of the first step
};

//   kInvalidArgument: an epoch has no whole step; names the place.
//   other: the checkpoint cannot be read.
absl::StatusOr<RunStart> FindRunStart(const LoadedConfig& loaded,
                                      const data::Dataset& train,
                                      nn::FileSystem& files);

// `files` outlives the job. The spec has no trace: its sink belongs to the
// caller.
absl::StatusOr<actors::JobSpec> BuildSpec(const LoadedConfig& loaded,
                                          const data::DataSplits& splits,
                                          const RunStart& start,
                                          nn::FileSystem& files);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_SPEC_BUILDER_H_
