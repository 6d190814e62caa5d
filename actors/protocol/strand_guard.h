// Error handling of a job's actors: an actor that fails sends one Failure to
// the supervisor and ends.
//
//   const FailureSource source = {supervisor, generation, rank, "loader"};
//   GuardStrand(self, source);                               // exceptions
//   ReportFailure(self, source, status);

#ifndef ACTORS_PROTOCOL_STRAND_GUARD_H_
#define ACTORS_PROTOCOL_STRAND_GUARD_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "actors/caf/status_error.h"
#include "actors/protocol/messages.h"
#include "base/exception_text.h"

namespace troupe::actors {

// The receiver of an actor's failures, and the fields that identify the actor
// in them. `rank` is -1 outside ranks.
struct FailureSource {
  FailureSink supervisor;
  std::int32_t generation = 0;
  int rank = -1;
  std::string actor;
};

inline Failure MakeFailure(std::int32_t generation, int rank,
                           const std::string& actor,
                           const absl::Status& status) {
  Failure failure;
  failure.generation = generation;
  failure.rank = rank;
  failure.actor = actor;
  failure.code = status.raw_code();
  failure.message = std::string(status.message());
  return failure;
}
inline Failure MakeFailure(const FailureSource& source,
                           const absl::Status& status) {
  return MakeFailure(source.generation, source.rank, source.actor, status);
}

// Sends a Failure to the supervisor and ends the actor. Messages that arrive
// later are dropped.
template <typename Self>
void ReportFailure(Self* self, const FailureSource& source,
                   const absl::Status& status) {
  self->send(source.supervisor, MakeFailure(source, status));
  self->quit(ToError(status));
}

// Makes an exception in any handler call `tell` with its text as a status, and
// end the actor.
template <typename Self, typename Tell>
void TellExceptions(Self* self, Tell tell) {
  self->set_exception_handler(
      [=](caf::scheduled_actor*, std::exception_ptr& exception) -> caf::error {
        const absl::Status status =
            absl::InternalError(base::ExceptionText(exception));
        tell(status);
        return ToError(status);
      });
}

// Makes an exception in any handler a Failure of this actor, with its text.
template <typename Self>
void GuardStrand(Self* self, const FailureSource& source) {
  TellExceptions(self, [=](const absl::Status& status) {
    caf::anon_send(source.supervisor, MakeFailure(source, status));
  });
}

}  // namespace troupe::actors

#endif  // ACTORS_PROTOCOL_STRAND_GUARD_H_
