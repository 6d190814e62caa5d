// How an actor of a job fails: it tells the supervisor, once, then ends.
//
//   GuardStrand(self, supervisor, rank, "loader");           // exceptions
//   ReportFailure(self, supervisor, rank, "loader", status);

#ifndef ACTORS_STRAND_GUARD_H_
#define ACTORS_STRAND_GUARD_H_

#include <string>

#include "absl/status/status.h"
#include "actors/messages.h"
#include "actors/status_error.h"
#include "base/exception_text.h"

namespace troupe::actors {

inline Failure MakeFailure(int rank, const std::string& actor,
                           const absl::Status& status) {
  Failure failure;
  failure.rank = rank;
  failure.actor = actor;
  failure.code = status.raw_code();
  failure.message = std::string(status.message());
  return failure;
}

// Ends the actor after telling the supervisor. Later messages are dropped.
template <typename Self>
void ReportFailure(Self* self, const SupervisorActor& supervisor, int rank,
                   const std::string& actor, const absl::Status& status) {
  self->send(supervisor, MakeFailure(rank, actor, status));
  self->quit(ToError(status));
}

// An exception in any handler becomes a failure of this actor, with its text.
template <typename Self>
void GuardStrand(Self* self, const SupervisorActor& supervisor, int rank,
                 const std::string& actor) {
  self->set_exception_handler(
      [=](caf::scheduled_actor*, std::exception_ptr& exception) -> caf::error {
        const absl::Status status =
            absl::InternalError(base::ExceptionText(exception));
        caf::anon_send(supervisor, MakeFailure(rank, actor, status));
        return ToError(status);
      });
}

}  // namespace troupe::actors

#endif  // ACTORS_STRAND_GUARD_H_
