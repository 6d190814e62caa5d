#include "comm/connect/connect_options.h"

#include "absl/strings/str_cat.h"

namespace troupe::comm {

absl::Status ConnectOptions::Validate() const {
  if (process < 0 || process >= processes) {
    return absl::InvalidArgumentError(
        absl::StrCat("process ", process, " of ", processes));
  }
  if (transport != Transport::kAuto && transport != Transport::kShm &&
      transport != Transport::kTcp) {
    return absl::InvalidArgumentError(
        "this transport brings processes together by itself: its row in "
        "comm/connect/transports.h makes the links");
  }
  if (token == JobToken{}) {
    return absl::InvalidArgumentError("the token of the job is not set");
  }
  if (advertised_host.empty() &&
      (bind_address == "0.0.0.0" || bind_address == "::")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "bind_address ", bind_address,
        " is every address of this host: advertised_host must say by which "
        "one others reach it"));
  }
  return absl::OkStatus();
}

}  // namespace troupe::comm
