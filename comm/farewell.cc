#include "comm/farewell.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace troupe::comm {
namespace {

absl::StatusCode CodeOf(std::uint64_t word) {
  const auto last =
      static_cast<std::uint64_t>(absl::StatusCode::kUnauthenticated);
  if (word < 1 || word > last) return absl::StatusCode::kUnknown;
  return static_cast<absl::StatusCode>(word);
}

}  // namespace

std::string FarewellBytes(const absl::Status& why) {
  const absl::string_view text = why.message().substr(0, kFarewellBytesMax);
  Frame frame;
  frame.type = kReservedType;
  frame.bytes = static_cast<std::uint32_t>(text.size());
  frame.words[0] = static_cast<std::uint64_t>(why.code());
  std::string bytes(reinterpret_cast<const char*>(&frame), sizeof(frame));
  bytes.append(text.data(), text.size());
  return bytes;
}

absl::Status ReadFarewell(const Frame& frame, const char* payload) {
  const std::size_t bytes =
      std::min<std::size_t>(frame.bytes, kFarewellBytesMax);
  return absl::Status(CodeOf(frame.words[0]),
                      absl::string_view(bytes > 0 ? payload : "", bytes));
}

}  // namespace troupe::comm
