// The contestants of the collectives benchmark: programs that wait for their
// turns (turns.h), asked in alternating order.
//
//   Contestants contestants(/*program=*/argv[0], /*ranks=*/2);
//   contestants.AddOurs("tcp", {"--worker=tcp"});
//   contestants.AddGloo(python);
//   contestants.Measure(/*bytes=*/4096, /*rounds=*/7);
//   std::optional<double> us = contestants.MedianOf("tcp");
//
// One that does not start, or ends, says so on standard error, once, and has no
// figures.

#ifndef TOOLS_BENCH_COLLECTIVES_CONTESTANTS_H_
#define TOOLS_BENCH_COLLECTIVES_CONTESTANTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/bench/peer.h"

namespace troupe::bench {

inline constexpr char kGloo[] = "gloo";
inline constexpr char kRawMpi[] = "MPI";

class Contestants {
 public:
  // `program` is this one's argv[0]; each contestant has so many ranks.
  Contestants(const std::string& program, int ranks);

  // This program with other arguments; those of "mpi" under mpirun.
  void AddOurs(const std::string& name, std::vector<std::string> arguments);
  // torch.distributed; nothing without a `python`.
  void AddGloo(const std::string& python);
  // MPI_Allreduce, where it was built.
  void AddRawMpi();

  // Each round in the other order than the one before.
  void Measure(std::int64_t bytes, int rounds);
  // Microseconds of one, by the last Measure().
  std::optional<double> MedianOf(const std::string& name) const;

 private:
  void Add(const std::string& name,
           absl::StatusOr<std::unique_ptr<Peer>> contestant);
  std::optional<double> Ask(const std::string& name, std::int64_t bytes,
                            std::int64_t count, std::int64_t blocks);

  const std::string self_, raw_mpi_, gloo_script_;
  const int ranks_;
  std::map<std::string, std::unique_ptr<Peer>> contestants_;
  std::vector<std::string> order_;
  std::map<std::string, std::vector<double>> figures_;
};

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_COLLECTIVES_CONTESTANTS_H_
