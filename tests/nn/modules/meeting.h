// Ranks on threads that add up tensors in memory: for tests of layers that
// communicate.
//
//   Meeting meeting(/*ranks=*/2);
//   std::thread peer([&] { RankOfMeeting rank(&meeting, 1); Run(rank); });
//   RankOfMeeting rank(&meeting, 0);
//   Run(rank);                    // calls rank.AllReduce(), as the peer does
//
// Sums are in the order of ranks, in f64, rounded once. Of reductions there are
// sums and maxima.

#ifndef TESTS_NN_MODULES_MEETING_H_
#define TESTS_NN_MODULES_MEETING_H_

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "gtest/gtest.h"
#include "nn/collectives.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {

class Meeting {
 public:
  explicit Meeting(int ranks) : given_(ranks) {}

  std::vector<double> Reduce(int rank, ReduceOp op, const Tensor& range) {
    std::unique_lock<std::mutex> lock(mutex_);
    given_[rank] = ValuesOf(range);
    const int round = round_;
    if (++arrived_ == static_cast<int>(given_.size())) {
      sum_.assign(given_[0].size(), op == ReduceOp::kMax ? -INFINITY : 0.0);
      for (const auto& values : given_) {
        EXPECT_EQ(values.size(), sum_.size()) << "ranks reduce other tensors";
        if (values.size() != sum_.size()) continue;
        for (std::size_t i = 0; i < sum_.size(); ++i) {
          sum_[i] = op == ReduceOp::kMax ? std::max(sum_[i], values[i])
                                         : sum_[i] + values[i];
        }
      }
      arrived_ = 0;
      ++round_;
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return round_ != round; });
    return sum_;
  }
  int size() const { return static_cast<int>(given_.size()); }
  int rounds() const { return round_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::vector<double>> given_;
  std::vector<double> sum_;
  int arrived_ = 0, round_ = 0;
};

class RankOfMeeting : public Collectives {
 public:
  RankOfMeeting(Meeting* meeting, int rank) : meeting_(meeting), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return meeting_->size(); }
  absl::Status AllReduce(ReduceOp op, const Tensor& range) override {
    EXPECT_TRUE(op == ReduceOp::kSum || op == ReduceOp::kMax);
    const std::vector<double> sum = meeting_->Reduce(rank_, op, range);
    if (range.dtype() == DType::kF64) {
      std::copy(sum.begin(), sum.end(), range.data<double>());
      return absl::OkStatus();
    }
    EXPECT_EQ(range.dtype(), DType::kF32);
    std::transform(sum.begin(), sum.end(), range.data<float>(),
                   [](double value) { return static_cast<float>(value); });
    return absl::OkStatus();
  }

 private:
  Meeting* const meeting_;
  const int rank_;
};

}  // namespace troupe::nn

#endif  // TESTS_NN_MODULES_MEETING_H_
