#include "actors/caf/status_error.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "caf/make_message.hpp"
#include "caf/sec.hpp"

namespace troupe::actors {
namespace {

// Our errors on the wire: this category, the status code, the message.
constexpr auto kCategory = caf::atom("troupe");

}  // namespace

caf::error ToError(const absl::Status& status) {
  if (status.ok()) return caf::none;
  return caf::error(static_cast<std::uint8_t>(status.raw_code()), kCategory,
                    caf::make_message(std::string(status.message())));
}

absl::Status FromError(caf::actor_system& system, const caf::error& error) {
  if (!error) return absl::OkStatus();
  if (error.category() == kCategory) {
    std::string message;
    if (error.context().match_elements<std::string>()) {
      message = error.context().get_as<std::string>(0);
    }
    return absl::Status(static_cast<absl::StatusCode>(error.code()), message);
  }
  const absl::StatusCode code = error == caf::sec::request_timeout
                                    ? absl::StatusCode::kDeadlineExceeded
                                    : absl::StatusCode::kInternal;
  return absl::Status(code, system.render(error));
}

}  // namespace troupe::actors
