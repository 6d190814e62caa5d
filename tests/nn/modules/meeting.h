// Ranks on threads that add up and gather tensors in memory: for tests of
// layers that communicate.
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
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "nn/collectives.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {

class Meeting {
 public:
  explicit Meeting(int ranks) : given_(ranks) {}

  // Returns the values of all ranks, in their order.
  std::vector<std::vector<double>> Exchange(int rank,
                                            std::vector<double> values) {
    std::unique_lock<std::mutex> lock(mutex_);
    given_[rank] = std::move(values);
    const int round = round_;
    if (++arrived_ == size()) {
      all_ = given_;
      arrived_ = 0;
      ++round_;
      for (const auto& others : all_) {
        EXPECT_EQ(others.size(), all_[0].size()) << "ranks give other tensors";
      }
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return round_ != round; });
    return all_;
  }
  int size() const { return static_cast<int>(given_.size()); }
  int rounds() const { return round_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::vector<double>> given_, all_;
  int arrived_ = 0, round_ = 0;
};

class RankOfMeeting : public Collectives {
 public:
  RankOfMeeting(Meeting* meeting, int rank) : meeting_(meeting), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return meeting_->size(); }
  absl::Status AllReduce(ReduceOp op, const Tensor& range) override {
    return Write(Reduced(op, range), range);
  }
  absl::Status AllGather(const Tensor& input, const Tensor& range) override {
    std::vector<double> joined;
    for (const auto& part : meeting_->Exchange(rank_, ValuesOf(input))) {
      joined.insert(joined.end(), part.begin(), part.end());
    }
    return Write(joined, range);
  }
  absl::Status ReduceScatter(ReduceOp op, const Tensor& input,
                             const Tensor& range) override {
    const std::vector<double> all = Reduced(op, input);
    EXPECT_EQ(range.numel() * size(), input.numel());
    const auto own = all.begin() + rank_ * range.numel();
    return Write({own, own + range.numel()}, range);
  }

 private:
  std::vector<double> Reduced(ReduceOp op, const Tensor& input) {
    EXPECT_TRUE(op == ReduceOp::kSum || op == ReduceOp::kMax);
    const bool max = op == ReduceOp::kMax;
    std::vector<double> result(input.numel(), max ? -INFINITY : 0.0);
    for (const auto& values : meeting_->Exchange(rank_, ValuesOf(input))) {
      if (values.size() != result.size()) continue;
      for (std::size_t i = 0; i < result.size(); ++i) {
        result[i] =
            max ? std::max(result[i], values[i]) : result[i] + values[i];
      }
    }
    return result;
  }

  static absl::Status Write(const std::vector<double>& values,
                            const Tensor& range) {
    EXPECT_EQ(static_cast<std::int64_t>(values.size()), range.numel());
    if (range.dtype() == DType::kF64) {
      std::copy(values.begin(), values.end(), range.data<double>());
      return absl::OkStatus();
    }
    EXPECT_EQ(range.dtype(), DType::kF32);
    std::transform(values.begin(), values.end(), range.data<float>(),
                   [](double value) { return static_cast<float>(value); });
    return absl::OkStatus();
  }

  Meeting* const meeting_;
  const int rank_;
};

}  // namespace troupe::nn

#endif  // TESTS_NN_MODULES_MEETING_H_
