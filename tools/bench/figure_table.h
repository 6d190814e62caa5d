// The rows of a benchmark in rounds: what each round brought, and how it is
// told.
//
//   FigureTable table("ddp_step", Report::Form::kTable);
//   Figure& figure = table.At("toy_mlp", 2, "steps/s", Better::kHigher);
//   figure.ours.push_back(145000);
//   figure.peer.push_back(700);
//   table.Print();                             // and later those that follow
//   table.End();
//
// A row's figure is the median over the rounds; the JSON has the best round
// beside it.

#ifndef TOOLS_BENCH_FIGURE_TABLE_H_
#define TOOLS_BENCH_FIGURE_TABLE_H_

#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/bench/report.h"

namespace troupe::bench {

struct Figure {
  std::string name;
  int ranks = 1;
  std::string unit;
  Better better = Better::kHigher;
  std::vector<double> ours = {};  // by round; empty: not measured
  std::vector<double> peer = {};
  std::string note = {};  // for people, behind the row
  // For programs: further keys of the row's JSON.
  std::vector<std::pair<std::string, double>> details = {};
};

class FigureTable {
 public:
  FigureTable(std::string bench, Report::Form form)
      : bench_(std::move(bench)), form_(form) {}

  // The row of these three, added where there is none; it stays where it is.
  Figure& At(const std::string& name, int ranks, const std::string& unit,
             Better better);
  // Returns null where there is none.
  const Figure* Find(const std::string& name, int ranks,
                     const std::string& unit) const;

  // Prints the rows that it has not printed yet. JSON is one object a row with
  // the keys of ToJson() and: ours_median, peer_median, ours_best, peer_best,
  // rounds, f32_peak_gflops, bf16_peak_gflops (null where there is none), and
  // the details.
  void Print();
  // Prints the table's last lines.
  void End();

 private:
  // Measured once, at the first row.
  struct Cpu {
    std::string name;
    double f32_peak = 0;
    std::optional<double> bf16_peak;
  };

  void PrintJson(const Figure& figure);
  void PrintRow(const Figure& figure);

  const std::string bench_;
  const Report::Form form_;
  std::optional<Report> report_;
  std::optional<Cpu> cpu_;
  std::deque<Figure> rows_;
  std::size_t printed_ = 0;
};

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_FIGURE_TABLE_H_
