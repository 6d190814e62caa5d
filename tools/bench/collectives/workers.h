// The contestants that are this program: ranks that do what turns.h asks, until
// their input ends.
//
//   WorkerOptions options;
//   options.way = "tcp";
//   options.ranks = 2;
//   absl::Status status = RunWorker(options);
//
// Rank 0 reads and answers. Ways:
//
//     local    ranks are threads
//     shm tcp  ranks are processes; rank 0's starts the others, unless
//              `folder` says where all meet
//     mpi      ranks are processes that mpirun has started
//     memcpy   threads that each copy a range at the same time: what memory
//              gives
//     sockets  threads that exchange what an all-reduce must, over TCP on
//              loopback, by system calls alone

#ifndef TOOLS_BENCH_COLLECTIVES_WORKERS_H_
#define TOOLS_BENCH_COLLECTIVES_WORKERS_H_

#include <string>

#include "absl/status/status.h"

namespace troupe::bench {

struct WorkerOptions {
  std::string way = "local";
  int ranks = 2;
  // Of shm and tcp: the folder of a FileStore, and this rank. Empty: the
  // others are children of this process.
  std::string folder;
  int rank = 0;
  std::string address = "127.0.0.1";  // to listen on
  // "exchange" or "two_step" (comm/spanning/algorithm.h); empty: as chosen.
  std::string algorithm;
};

// Blocks. kInvalidArgument: there is no such way.
absl::Status RunWorker(const WorkerOptions& options);

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_COLLECTIVES_WORKERS_H_
