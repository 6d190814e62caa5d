// Collects the figures of a benchmark that runs in rounds, and prints a row for
// each.
//
//   FigureTable table("ddp_step", Report::Form::kTable);
//   Figure& figure = table.At("toy_mlp", 2, "steps/s", Better::kHigher);
//   figure.ours.push_back(145000);
//   figure.peer.push_back(700);
//   table.Print();                             // prints the new rows
//   table.End();
//
// A row's figure is the median over the rounds; its JSON also has the best.

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
  std::vector<double> ours = {};  // one figure per round
  std::vector<double> peer = {};
  std::string note = {};  // text at the end of the table's row
  // Further keys of the row's JSON.
  std::vector<std::pair<std::string, double>> details = {};
};

class FigureTable {
 public:
  FigureTable(std::string bench, Report::Form form)
      : bench_(std::move(bench)), form_(form) {}

  // Returns the row with this name, ranks and unit; adds it if there is none.
  // References stay valid.
  Figure& At(const std::string& name, int ranks, const std::string& unit,
             Better better);
  // Returns the row, or null if there is none.
  const Figure* Find(const std::string& name, int ranks,
                     const std::string& unit) const;

  // Prints the rows that were not printed yet. In JSON each row is an object
  // with the keys of ToJson(), ours_median, peer_median, ours_best, peer_best,
  // rounds, f32_peak_gflops, bf16_peak_gflops (null if there is none), and the
  // details.
  void Print();
  // Prints the table's last lines.
  void End();

 private:
  // Name and peaks of the CPU, measured once, at the first row.
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
