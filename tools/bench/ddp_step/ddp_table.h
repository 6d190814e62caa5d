// The rows of the ddp_step benchmark: what each round brought, and how it is
// told.
//
//   DdpTable table;
//   Figure& figure = table.At("toy_mlp", 2, "steps/s", Better::kHigher);
//   figure.ours.push_back(145000);
//   figure.peer.push_back(700);
//   table.Print(/*json=*/false);
//
// A row's figure is the median over the rounds; the JSON has the best round
// beside it.

#ifndef TOOLS_BENCH_DDP_STEP_DDP_TABLE_H_
#define TOOLS_BENCH_DDP_STEP_DDP_TABLE_H_

#include <deque>
#include <string>
#include <vector>

#include "tools/bench/report.h"

namespace troupe::bench {

struct Figure {
  std::string name;
  int ranks = 1;
  std::string unit;
  Better better = Better::kHigher;
  std::vector<double> ours, peer;  // by round; empty: not measured
};

class DdpTable {
 public:
  // The row, added where there is none; it stays where it is.
  Figure& At(const std::string& name, int ranks, const std::string& unit,
             Better better);
  // Returns null where there is none.
  const Figure* Find(const std::string& name, int ranks) const;
  // One JSON object a row with the keys of ToJson() and: ours_median,
  // peer_median, ours_best, peer_best, rounds, f32_peak_gflops,
  // bf16_peak_gflops (null where there is none).
  void Print(bool json) const;

 private:
  std::deque<Figure> rows_;
};

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_DDP_STEP_DDP_TABLE_H_
