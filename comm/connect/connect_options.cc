#include "comm/connect/connect_options.h"

#include "absl/strings/str_cat.h"

namespace troupe::comm {

absl::Status ConnectOptions::Validate() const {
  if (process < 0 || process >= processes) {
    return absl::InvalidArgumentError(
        absl::StrCat("ConnectOptions.process must be 0 to ", processes - 1,
                     ", not ", process));
  }
  if (transport != Transport::kAuto && transport != Transport::kShm &&
      transport != Transport::kTcp) {
    return absl::InvalidArgumentError(
        "ConnectOptions.transport must be auto, shm or tcp: others bring "
        "processes "
        "together by themselves (comm/connect/transports.h)");
  }
  if (token == JobToken{}) {
    return absl::InvalidArgumentError(
        "ConnectOptions.token is not set; give all processes of a job one");
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
