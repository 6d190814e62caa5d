// The plan of the run that wrote a checkpoint, plan.json in its folder.
//
//   TROUPE_RETURN_IF_ERROR(WritePlanFile(files, folder, plan));
//
//   absl::StatusOr<std::optional<pipeline::Plan>> plan =
//       ReadPlanFile(files, checkpoint.path());
//
// A run may be resumed under any other plan: tensors are found by name, and the
// rest of the data is divided anew. With the file it can report what has
// changed. Checkpoints of earlier versions have none.
//
// Threads: none of its own. Calls block until the disk is done.

#ifndef ACTORS_CHECKPOINT_PLAN_FILE_H_
#define ACTORS_CHECKPOINT_PLAN_FILE_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/files/file_system.h"
#include "pipeline/plan.h"

namespace troupe::actors {

// Writes the file into a folder that has a temporary name (writer.h), and syncs
// it to the disk.
absl::Status WritePlanFile(base::FileSystem& files, const std::string& folder,
                           const pipeline::Plan& plan);

// Returns the plan in the folder, or nothing if it has no such file.
//   kDataLoss: it is no plan; names the file, and the field that is wrong.
//   kResourceExhausted: it exceeds kPlanBytesMax (pipeline/plan_json.h).
absl::StatusOr<std::optional<pipeline::Plan>> ReadPlanFile(
    base::FileSystem& files, const std::string& folder);

}  // namespace troupe::actors

#endif  // ACTORS_CHECKPOINT_PLAN_FILE_H_
