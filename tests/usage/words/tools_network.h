// Declares names that the usage comments in tools/network/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_TOOLS_NETWORK_H_
#define TESTS_USAGE_WORDS_TOOLS_NETWORK_H_

#include <string>
#include <vector>

namespace troupe::network::usage::network_hosts_h {
void Run(const std::vector<std::string>& command);
}

#endif  // TESTS_USAGE_WORDS_TOOLS_NETWORK_H_
