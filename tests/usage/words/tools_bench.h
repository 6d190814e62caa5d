// Declares names that the usage comments in tools/bench/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_TOOLS_BENCH_H_
#define TESTS_USAGE_WORDS_TOOLS_BENCH_H_

#include <iostream>
#include <string>
#include <vector>

namespace troupe::bench::usage {

namespace peer_h {
extern const std::string python;
extern char** argv;
}  // namespace peer_h

namespace report_h {
extern const std::vector<double> ours, theirs;
}

namespace torch_train_h {
extern const std::string python;
extern char** argv;
}  // namespace torch_train_h

}  // namespace troupe::bench::usage

#endif  // TESTS_USAGE_WORDS_TOOLS_BENCH_H_
