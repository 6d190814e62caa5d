// The pipeline that a configuration asks for: where the model is cut, which
// rank holds which stages, and in which order they run.
//
//   TROUPE_ASSIGN_OR_RETURN(spec.plan, PipelineOptions(loaded, sample));
//
// Cuts that nobody wrote make stages alike (pipeline/balance.h); a schedule is
// known by its name (pipeline/schedules/schedules.h), stands in a file, or is
// looked for. Where mesh.balance is "measured", they are those of
// mesh.balance = "flops" until somebody has measured:
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
#include "actors/spec/job_spec.h"
#include "base/file_system.h"
#include "data/dataset.h"
#include "pipeline/plan.h"
#include "tools/trainer/config/config.h"

namespace troupe::tools {

// The values of mesh.schedule.
std::vector<std::string> ScheduleChoices();

// The name that mesh.schedule stands for: "auto" is another one. Empty: there
// is no pipeline.
std::string ScheduleName(const TrainerConfig& config);

// Reads mesh.schedule_file, where it is set.
//   the reader's error, with the key's place.
absl::Status ReadGrid(base::FileSystem& files, LoadedConfig& loaded);

// The options of the job's plan, complete.
//   kInvalidArgument, with the place of a key: the model has too few layers, a
//   schedule does not take the sizes, a file has no tables of them.
absl::StatusOr<pipeline::PlanOptions> PipelineOptions(
    const LoadedConfig& loaded, const data::SampleSpec& sample);

// Whether cuts or schedule wait for measured costs.
bool IsPipelineOpen(const TrainerConfig& config);

// How they are set, then; what measures is left to the caller. Errors of
// PipelineOptions(), and
//   kInvalidArgument, with the place of mesh.memory_limit: what does not fit.
actors::OpenPipeline OpenPipelineOf(const LoadedConfig& loaded,
                                    const data::SampleSpec& sample);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_CONFIG_PIPELINE_OPTIONS_H_
