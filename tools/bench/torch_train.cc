#include "tools/bench/torch_train.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::bench {

TorchTrain::TorchTrain(const std::string& program, std::string python)
    : script_(FindScript(program, "tools/bench/torch_train.py")),
      python_(std::move(python)) {}

absl::StatusOr<double> TorchTrain::StepsPerSecond(const TorchStep& step,
                                                  double seconds) {
  std::unique_ptr<Peer>& peer = peers_[step.ranks];
  if (peer == nullptr) {
    TROUPE_ASSIGN_OR_RETURN(
        peer,
        Peer::Start(python_, script_, {absl::StrCat("--ranks=", step.ranks)}));
  }
  return peer->Measure(absl::StrCat(step.name, " ", step.precision, " ",
                                    step.mode, " ", seconds));
}

absl::StatusOr<double> TorchTrain::AskOnce(
    std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), {python_, script_});
  return Peer::AskOnce(std::move(arguments));
}

}  // namespace troupe::bench
