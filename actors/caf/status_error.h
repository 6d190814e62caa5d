// Converts absl::Status to caf::error and back.
//
//   return ToError(absl::NotFoundError("no such file"));    // in a handler
//   absl::Status status = FromError(system, error);
//
// Our errors keep code and message; CAF's own become kInternal, or
// kDeadlineExceeded for a request that timed out, with CAF's text.

#ifndef ACTORS_CAF_STATUS_ERROR_H_
#define ACTORS_CAF_STATUS_ERROR_H_

#include "absl/status/status.h"
#include "actors/caf/caf.h"

namespace troupe::actors {

caf::error ToError(const absl::Status& status);
absl::Status FromError(caf::actor_system& system, const caf::error& error);

}  // namespace troupe::actors

#endif  // ACTORS_CAF_STATUS_ERROR_H_
