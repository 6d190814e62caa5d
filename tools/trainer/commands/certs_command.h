// `trainer certs`: certificates for the nodes of a cluster.
//
//   CertsOptions options;
//   options.dir = "certs";
//   options.hosts = {"n1", "10.0.0.7"};
//   TROUPE_ASSIGN_OR_RETURN(std::string text, MakeCerts(options, absl::Now()));
//   std::cout << text;  // what to copy where

#ifndef TOOLS_TRAINER_COMMANDS_CERTS_COMMAND_H_
#define TOOLS_TRAINER_COMMANDS_CERTS_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/trainer/commands/command.h"

namespace troupe::tools {

struct CertsOptions {
  bool help = false;
  std::string dir;
  std::vector<std::string> hosts;  // a folder for each; empty: one for all
  int days = 365;
};

// Parses what follows `certs` on the command line.
//   kInvalidArgument: one line that says what was not understood.
absl::StatusOr<CertsOptions> ParseCerts(
    const std::vector<std::string>& arguments);

std::string CertsHelp();

// Makes an authority in `dir`, or uses an existing one, and a folder below it
// for each host. Overwrites nothing: a folder that exists is an error. Returns
// the text to show to the user.
absl::StatusOr<std::string> MakeCerts(const CertsOptions& options,
                                      absl::Time now);

Command CertsCommand();

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_COMMANDS_CERTS_COMMAND_H_
