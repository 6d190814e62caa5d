// Asks for a job's threads before its actors do. A limit on processes (ulimit
// -u, a container's pids limit) that is met in the middle of a spawn would end
// the process, or leave actors behind that wait for others.
//
//   TROUPE_RETURN_IF_ERROR(CheckThreadSupply(process.ranks.size()));

#ifndef ACTORS_THREAD_SUPPLY_H_
#define ACTORS_THREAD_SUPPLY_H_

#include <functional>
#include <thread>

#include "absl/status/status.h"

namespace troupe::actors {

// Number of threads of a job with `ranks` ranks in this process:
// docs/threads.md.
int JobThreads(int ranks);

// Starts a thread that runs the function; throws std::system_error where there
// is none to be had.
using ThreadStarter = std::function<std::thread(std::function<void()>)>;

// Starts as many threads as a job needs, all at once, and ends them.
//   kResourceExhausted: one was refused; says which, and what to do.
absl::Status CheckThreadSupply(int ranks);
absl::Status CheckThreadSupply(int ranks, const ThreadStarter& start);

}  // namespace troupe::actors

#endif  // ACTORS_THREAD_SUPPLY_H_
