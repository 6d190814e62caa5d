// Declares names that the usage comments in base/processes/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_BASE_PROCESSES_H_
#define TESTS_USAGE_WORDS_BASE_PROCESSES_H_

#include <poll.h>
#include <unistd.h>

#include <iostream>
#include <string>
#include <vector>

#include "base/check.h"

namespace troupe::base::usage {

namespace process_group_h {
extern const std::vector<std::string> command;
}

namespace reserved_port_h {
void Show(int port);
}

namespace signal_queue_h {
void Handle(int signal);
}

}  // namespace troupe::base::usage

#endif  // TESTS_USAGE_WORDS_BASE_PROCESSES_H_
