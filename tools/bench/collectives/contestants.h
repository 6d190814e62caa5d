// The contestants of the collectives benchmark: programs that wait for their
// turns (turns.h), which they get in alternating order.
//
//   Contestants contestants(/*program=*/argv[0], /*ranks=*/2);
//   contestants.AddOurs("tcp", {"--worker=tcp"});
//   contestants.AddGloo(python);
//   contestants.Measure(/*bytes=*/4096, /*rounds=*/7);
//   std::optional<double> us = contestants.MedianOf("tcp");
//
// A contestant that does not start, or ends early, is reported once on standard
// error, and has no figures.

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
  // `program` is argv[0] of this one; each contestant has `ranks` ranks.
  Contestants(const std::string& program, int ranks);

  // Adds this program with other arguments; if `under_mpirun`, mpirun starts
  // its ranks.
  void AddOurs(const std::string& name, std::vector<std::string> arguments,
               bool under_mpirun = false);
  // Adds torch.distributed over Gloo; does nothing if `python` is empty.
  void AddGloo(const std::string& python);
  // Adds MPI_Allreduce, if that program was built.
  void AddRawMpi();

  // Measures all contestants `rounds` times, in alternating order.
  void Measure(std::int64_t bytes, int rounds);
  // Returns the median of a contestant in the last Measure(), in microseconds.
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
