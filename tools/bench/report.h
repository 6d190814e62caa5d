// How benchmarks tell their figures: a table for people, or one JSON object a
// line for programs; each figure beside the peer's, where there is one.
//
//   Report report("all_reduce", Report::Form::kTable);
//   report.Add({"4 KB", /*ranks=*/2, "us", Median(ours), Median(theirs)});
//   report.Add({"toy MLP", 1, "steps/s", 490000, {}, Better::kHigher});
//   report.End();             // where no row had a peer, says how to get it
//
// A ratio above 1 means better than the peer, whatever the unit. One never
// knows which CPU the next run gets: only figures of one run compare, so ours
// and the peer's rounds alternate (peer.h), and the CPU is named.

#ifndef TOOLS_BENCH_REPORT_H_
#define TOOLS_BENCH_REPORT_H_

#include <optional>
#include <string>
#include <vector>

namespace troupe::bench {

enum class Better { kLower, kHigher };

struct Row {
  std::string name;  // the key "case" in JSON
  int ranks = 1;
  std::string unit;
  double ours = 0;
  std::optional<double> peer;
  Better better = Better::kLower;
  std::string note = {};  // behind the row of a table

  // How many times better than the peer; none without a peer.
  std::optional<double> ratio() const;
};

// {"bench":"all_reduce","case":"4 KB","ranks":2,"unit":"us","ours":0.6,
//  "peer":280,"ratio":466.7,"cpu":"AMD EPYC"}; null where there is no peer.
// Where a GPU computes, "gpu":"NVIDIA H200" comes last.
std::string ToJson(const std::string& bench, const std::string& cpu,
                   const Row& row, const std::string& gpu = "");

class Report {
 public:
  enum class Form { kTable, kJson };

  // Prints the CPU, the GPU where one computes, and the head of the table.
  Report(std::string bench, Form form, std::string gpu = "");
  // Prints the row at once.
  void Add(const Row& row);
  // Says how to get a peer, if no row had one.
  void End();

 private:
  const std::string bench_;
  const Form form_;
  const std::string cpu_;
  const std::string gpu_;
  bool has_rows_ = false;
  bool has_peer_ = false;
};

// The mean of the middle two where their number is even. CHECK-fails on none.
double Median(std::vector<double> values);

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_REPORT_H_
