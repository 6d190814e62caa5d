// One case of the nn benchmark in one precision: measures rounds of our steps
// and of PyTorch's, on one rank and on several, and adds their rows.
//
//   Contest contest({"resnet18", "bf16"}, {}, torch, table);
//   TROUPE_RETURN_IF_ERROR(contest.Run());
//   table.Print();
//
// A round measures each number of ranks in turn, ours first and then PyTorch's;
// the next round does so in the reverse order. On the first number of ranks
// PyTorch runs in all its modes, and the best one by the median over the rounds
// is the peer. On the others it runs in the best mode of the first round, or in
// the next best one that works there.
//
// Rows, all named after case and precision: steps/s for each number of ranks,
// with the GFLOP/s of a rank and the fraction of the core's peak; and "x 1
// rank", the time of a step on several ranks over that on one.

#ifndef TOOLS_BENCH_NN_CONTEST_H_
#define TOOLS_BENCH_NN_CONTEST_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "actors/spec/job_spec.h"
#include "tools/bench/figure_table.h"
#include "tools/bench/nn/step_work.h"
#include "tools/bench/torch_train.h"

namespace troupe::bench {

struct CaseAndPrecision {
  std::string name;
  std::string precision;  // "f32", "bf16"

  bool is_bf16() const { return precision == "bf16"; }
  // Returns "resnet18 bf16".
  std::string Label() const { return name + " " + precision; }
  // Returns the job on `ranks` ranks. Errors: those of MakeTrainJob().
  absl::StatusOr<actors::JobSpec> Job(
      int ranks, std::vector<std::string> settings = {}) const;
};

struct ContestOptions {
  std::vector<int> ranks = {1, 2};
  int rounds = 5;
  double seconds = 2;  // time of one contestant and mode in one round
};

class Contest {
 public:
  // `torch` and `table` must outlive the contest.
  Contest(CaseAndPrecision what, ContestOptions options, TorchTrain& torch,
          FigureTable& table)
      : what_(std::move(what)),
        options_(std::move(options)),
        torch_(torch),
        table_(table) {}

  // Measures all rounds and adds the rows.
  //   Errors: those of a job, or of the peer's process.
  absl::Status Run();

 private:
  using Rates = std::vector<double>;  // steps per second of each round

  // Measurements on one number of ranks.
  struct Side {
    Rates ours;
    std::map<std::string, Rates> torch;  // key: mode
    // Modes to measure in the next round, without those that do not run.
    std::vector<std::string> modes;
  };

  absl::Status Prepare();
  absl::Status MeasureOurs(int ranks);
  absl::Status MeasureTorch(int ranks);
  bool IsFirst(int ranks) const { return ranks == options_.ranks.front(); }
  // Returns PyTorch's modes to measure, best first if that is known.
  std::vector<std::string> ModesFor(int ranks) const;
  void AddRates(int ranks);
  void AddScaling(int ranks);
  std::string Note(const Side& side, const std::string& best) const;
  double Gflops(double rate) const { return flops_ * rate / 1e9; }

  const CaseAndPrecision what_;
  const ContestOptions options_;
  TorchTrain& torch_;
  FigureTable& table_;

  std::map<int, actors::JobSpec> jobs_;  // key: number of ranks
  std::map<int, Side> sides_;
  double flops_ = 0;           // work of a step of one rank
  std::vector<double> peaks_;  // peak of a core in GFLOP/s, by round
  bool native_peak_ = true;
  bool has_images_ = false;
};

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_NN_CONTEST_H_
