// The plan of the run that wrote a checkpoint, plan.json in its folder.
//
//   TROUPE_RETURN_IF_ERROR(WritePlanFile(files, folder, plan));
//
//   absl::StatusOr<std::optional<pipeline::Plan>> plan =
//       ReadPlanFile(files, checkpoint.path());
//
// A run may go on under any other plan: tensors are found by name, and what is
// left of the data is shared out anew. The file lets it say what has changed.
// Checkpoints of earlier versions have none.
//
// Threads: none of its own. Calls block for as long as the disk takes.

#ifndef ACTORS_CHECKPOINT_PLAN_FILE_H_
#define ACTORS_CHECKPOINT_PLAN_FILE_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file_system.h"
#include "pipeline/plan.h"

namespace troupe::actors {

// Into a folder that has no name yet (writer.h), and onto the disk.
absl::Status WritePlanFile(base::FileSystem& files, const std::string& folder,
                           const pipeline::Plan& plan);

// Nothing where there is no such file.
//   kDataLoss: it is no plan; names the file, and the field that is wrong.
//   kResourceExhausted: it is larger than plans are (pipeline/plan_json.h).
absl::StatusOr<std::optional<pipeline::Plan>> ReadPlanFile(
    base::FileSystem& files, const std::string& folder);

}  // namespace troupe::actors

#endif  // ACTORS_CHECKPOINT_PLAN_FILE_H_
