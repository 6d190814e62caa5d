// Contestants that are this program: ranks that run the turns of turns.h until
// their input ends.
//
//   WorkerOptions options;
//   options.way = "tcp";
//   options.ranks = 2;
//   absl::Status status = RunWorker(options);
//
// Rank 0 reads the turns and answers. Ways:
//
//     local    ranks are threads
//     shm, tcp, mpi, ...  the transports of comm/connect/transports.h: ranks
//              are processes; rank 0 starts the others, unless `folder` is set
//              (all meet there) or the transport needs mpirun to start them
//     memcpy   threads that each copy a range at the same time: the bound that
//              memory sets
//     sockets  threads that exchange the bytes of an all-reduce over TCP on
//              loopback, by system calls alone

#ifndef TOOLS_BENCH_COLLECTIVES_WORKERS_H_
#define TOOLS_BENCH_COLLECTIVES_WORKERS_H_

#include <string>

#include "absl/status/status.h"

namespace troupe::bench {

struct WorkerOptions {
  std::string way = "local";
  int ranks = 2;
  // For processes without mpirun: the folder of a FileStore, and this rank. If
  // empty, the other ranks are children of this process.
  std::string folder;
  int rank = 0;
  std::string address = "127.0.0.1";  // to listen on
  // "exchange" or "two_step" (comm/spanning/plan/algorithm.h); empty: the one
  // that comm/spanning chooses.
  std::string algorithm;
};

// Runs the turns; blocks until the input ends.
//   kInvalidArgument: there is no such way.
absl::Status RunWorker(const WorkerOptions& options);

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_COLLECTIVES_WORKERS_H_
