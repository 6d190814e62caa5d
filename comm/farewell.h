// The last frame of a link that is closed on purpose: it states the reason.
//
//   const std::string bytes = FarewellBytes(absl::AbortedError("a rank died"));
//   const absl::Status why = ReadFarewell(frame, payload);
//
// The frame has the type kReservedType, the status code in words[0], and the
// message as its payload.

#ifndef COMM_FAREWELL_H_
#define COMM_FAREWELL_H_

#include <string>

#include "absl/status/status.h"
#include "comm/link.h"

namespace troupe::comm {

// Limit on the message; longer ones are cut.
inline constexpr std::size_t kFarewellBytesMax = 4096;

// Returns the frame followed by its payload.
std::string FarewellBytes(const absl::Status& why);

// Returns the reason, never ok. An unknown code becomes kUnknown.
absl::Status ReadFarewell(const Frame& frame, const char* payload);

}  // namespace troupe::comm

#endif  // COMM_FAREWELL_H_
