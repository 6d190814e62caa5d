// Formats amounts of memory for messages.
//
//   FormatBytes(640);       // "640 bytes"
//   FormatBytes(1250000);   // "1.2 MiB"

#ifndef BASE_FORMAT_BYTES_H_
#define BASE_FORMAT_BYTES_H_

#include <cstdint>
#include <string>

namespace troupe::base {

// Uses the unit that fits, with one decimal digit below 100.
std::string FormatBytes(std::uint64_t bytes);

}  // namespace troupe::base

#endif  // BASE_FORMAT_BYTES_H_
