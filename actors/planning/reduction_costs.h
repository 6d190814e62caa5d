// Time that ranks need to add up gradients, and what layers add up over tp, for
// predictions of steps.
//
//   ReductionCosts costs = MeasureReductionCosts(/*ranks=*/4);
//   costs.SecondsOf(/*bytes=*/4e6, /*ranks=*/4);
//   costs = {/*latency=*/50e-6, /*bytes_per_second=*/1.25e9};  // 10 Gbit/s
//
// The model is that of a ring or of a reduce-scatter and an all-gather: each
// rank sends 2 (d - 1) / d of the bytes, half of them in either (Patarasuk and
// Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of
// workstations").

#ifndef ACTORS_PLANNING_REDUCTION_COSTS_H_
#define ACTORS_PLANNING_REDUCTION_COSTS_H_

namespace troupe::actors {

struct ReductionCosts {
  double latency = 0;           // seconds of a reduction of nothing
  double bytes_per_second = 0;  // sent by a rank; above 0

  // Returns the seconds of an all-reduce of `bytes`; 0 for one rank.
  double SecondsOf(double bytes, int ranks) const;
  // Returns those of a reduce-scatter, or of an all-gather, of `bytes` in all.
  double HalfSecondsOf(double bytes, int ranks) const {
    return SecondsOf(bytes / 2, ranks);
  }
};

// Returns the bytes that a rank sends in an all-reduce of `bytes`.
double BytesSent(double bytes, int ranks);

// Measures all-reduces between threads of this process, as many as it has ranks
// and cores, at least two. Takes about 10 ms.
ReductionCosts MeasureReductionCosts(int ranks);

// Returns the costs of links of `bandwidth` bytes a second between processes,
// with some messages of a local network as latency. 0: measures threads.
ReductionCosts LinkCosts(int ranks, double bandwidth);

}  // namespace troupe::actors

#endif  // ACTORS_PLANNING_REDUCTION_COSTS_H_
