// The section "mesh" of the configuration: its keys, and the pipeline that it
// asks for: where the model is cut, which rank holds which stages, and in which
// order they run.
//
//   TROUPE_ASSIGN_OR_RETURN(spec.plan, PipelineOptions(loaded, sample));
//
// Cuts that the configuration does not set balance the stages
// (pipeline/balance.h). A schedule has a name (pipeline/schedules/schedules.h),
// is read from a file, or is searched for. If mesh.balance is "measured", cuts
// and schedule are those of mesh.balance = "flops" until costs are measured:
//
//   if (IsPipelineOpen(loaded.config)) {
//     spec.open_pipeline = OpenPipelineOf(loaded, sample);
//   }

#ifndef TOOLS_TRAINER_CONFIG_PIPELINE_OPTIONS_H_
#define TOOLS_TRAINER_CONFIG_PIPELINE_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "actors/spec/job_spec.h"
#include "base/files/file_system.h"
#include "data/dataset.h"
#include "pipeline/plan.h"
#include "tools/trainer/config/config.h"

namespace troupe::tools {

struct ConfigKey;

// The keys of the section, a part of the table of keys (config_keys.h).
absl::Span<const ConfigKey> MeshKeys();

// Returns the values of mesh.schedule.
std::vector<std::string> ScheduleChoices();

// Returns the name of the schedule, also for mesh.schedule = "auto". Empty:
// there is no pipeline.
std::string ScheduleName(const TrainerConfig& config);

// Reads mesh.schedule_file if it is set.
//   Errors: those of the reader, with the key's place.
absl::Status ReadGrid(base::FileSystem& files, LoadedConfig& loaded);

// Returns the complete options of the job's plan.
//   kInvalidArgument, with the place of a key: the model has too few layers, a
//   schedule does not take the sizes, a file has no tables of them.
absl::StatusOr<pipeline::PlanOptions> PipelineOptions(
    const LoadedConfig& loaded, const data::SampleSpec& sample);

// Whether cuts or schedule depend on measured costs.
bool IsPipelineOpen(const TrainerConfig& config);

// Returns the function that sets cuts and schedule from measured costs; the
// caller measures. Errors: those of PipelineOptions(), and
//   kInvalidArgument, with the place of mesh.memory_limit: what does not fit.
actors::OpenPipeline OpenPipelineOf(const LoadedConfig& loaded,
                                    const data::SampleSpec& sample);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_CONFIG_PIPELINE_OPTIONS_H_
