// Declares names that the usage comments in tools/bench/collectives/ leave
// undeclared.

#ifndef TESTS_USAGE_WORDS_TOOLS_BENCH_COLLECTIVES_H_
#define TESTS_USAGE_WORDS_TOOLS_BENCH_COLLECTIVES_H_

#include <cstdint>
#include <string>

namespace troupe::bench::usage {

namespace contestants_h {
extern char** argv;
extern const std::string python;
}  // namespace contestants_h

namespace file_store_h {
extern const std::string folder;
}

namespace turns_h {
void Reduce(std::int64_t bytes);
}

}  // namespace troupe::bench::usage

#endif  // TESTS_USAGE_WORDS_TOOLS_BENCH_COLLECTIVES_H_
