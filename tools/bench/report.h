// Prints the figures of a benchmark: as a table, or as one JSON object per line
// for programs; each figure beside the peer's, if there is one.
//
//   Report report("all_reduce", Report::Form::kTable);
//   report.Add({"4 KB", /*ranks=*/2, "us", Median(ours), Median(theirs)});
//   report.Add({"toy MLP", 1, "steps/s", 490000, {}, Better::kHigher});
//   report.End();             // says how to get a peer if no row had one
//
// A ratio above 1 means better than the peer, whatever the unit. The next run
// may get another CPU, so only figures of one run are comparable: ours and the
// peer's rounds alternate (peer.h), and the report names the CPU.

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
  std::string note = {};  // text at the end of the table's row

  // Returns how many times better than the peer; none without a peer.
  std::optional<double> ratio() const;
};

// {"bench":"all_reduce","case":"4 KB","ranks":2,"unit":"us","ours":0.6,
//  "peer":280,"ratio":466.7,"cpu":"AMD EPYC"}; null if there is no peer. If
// `gpu` is not empty, "gpu":"NVIDIA H200" is the last key.
std::string ToJson(const std::string& bench, const std::string& cpu,
                   const Row& row, const std::string& gpu = "");

class Report {
 public:
  enum class Form { kTable, kJson };

  // Prints the CPU, the GPU if one computes, and the head of the table.
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

// Returns the median: the mean of the middle two values if their number is
// even. CHECK-fails on an empty list.
double Median(std::vector<double> values);

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_REPORT_H_
