// The last frame of a link that ends on purpose: it says why.
//
//   const std::string bytes = FarewellBytes(absl::AbortedError("a rank died"));
//   const absl::Status why = ReadFarewell(frame, payload);
//
// It has the type kReservedType, the status code in words[0], and the message
// as its payload.

#ifndef COMM_FAREWELL_H_
#define COMM_FAREWELL_H_

#include <string>

#include "absl/status/status.h"
#include "comm/link.h"

namespace troupe::comm {

// Longer messages are cut.
inline constexpr std::size_t kFarewellBytesMax = 4096;

// Frame and payload, one behind the other.
std::string FarewellBytes(const absl::Status& why);

// Never ok. A code that does not exist becomes kUnknown.
absl::Status ReadFarewell(const Frame& frame, const char* payload);

}  // namespace troupe::comm

#endif  // COMM_FAREWELL_H_
