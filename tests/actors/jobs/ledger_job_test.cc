// A ledger of the samples that a whole job reads: each epoch has every sample
// once, in an order of its own.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "actors/job.h"
#include "data/dataset.h"
#include "data/subset.h"
#include "gtest/gtest.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

// A dataset that notes which samples each epoch was asked for.
class Ledger : public data::Dataset {
 public:
  explicit Ledger(data::DatasetPtr samples)
      : Dataset(samples->size(), samples->spec()),
        samples_(std::move(samples)) {}

  // Returns the samples of an epoch in the order of the calls.
  std::vector<std::int64_t> Of(std::int64_t epoch) const {
    absl::MutexLock lock(&mutex_);
    const auto found = seen_.find(epoch);
    return found == seen_.end() ? std::vector<std::int64_t>() : found->second;
  }
  std::size_t epochs() const {
    absl::MutexLock lock(&mutex_);
    return seen_.size();
  }

 private:
  absl::Status Gather(absl::Span<const std::int64_t> indices,
                      std::int64_t epoch, const nn::Tensor& inputs,
                      const nn::Tensor& targets) const override {
    {
      absl::MutexLock lock(&mutex_);
      std::vector<std::int64_t>& list = seen_[epoch];
      list.insert(list.end(), indices.begin(), indices.end());
    }
    return samples_->Fill(indices, epoch, inputs, targets);
  }

  const data::DatasetPtr samples_;
  mutable absl::Mutex mutex_;
  mutable std::map<std::int64_t, std::vector<std::int64_t>> seen_;
};

// 96 samples are three steps of 32. Each epoch has every sample once, in an
// order of its own, over any replicas and resumes.
TEST(LedgerJobTest, EveryEpochHasEachSampleOnce) {
  constexpr std::int64_t kSamples = 96, kEpochs = 4;
  std::vector<std::int64_t> all(kSamples);
  std::iota(all.begin(), all.end(), 0);
  // Orders of the epochs on one rank, in one run.
  std::vector<std::vector<std::int64_t>> orders;
  for (const int dp : {1, 2, 4}) {
    for (const std::vector<std::int64_t>& stops :
         {std::vector<std::int64_t>{12}, {1, 12}, {3, 7, 8, 12}}) {
      const std::string name =
          absl::StrCat("ledger_dp", dp, "_stops", stops.size());
      SCOPED_TRACE(name);
      JobSpec spec = TinyCnnJob(dp, 0);
      spec.train = *data::MakeSubset(spec.train, 0, kSamples);
      const auto ledger = std::make_shared<Ledger>(spec.train);
      spec.train = ledger;
      spec.test = nullptr;
      spec.checkpoint.dir = FreshFolder(name);
      spec.checkpoint.resume = true;
      for (const std::int64_t stop : stops) {
        spec.steps = stop;
        ReportsOf(spec);
      }
      EXPECT_EQ(ledger->epochs(), static_cast<std::size_t>(kEpochs));
      for (std::int64_t epoch = 0; epoch < kEpochs; ++epoch) {
        std::vector<std::int64_t> seen = ledger->Of(epoch);
        if (dp == 1 && stops.size() == 1) orders.push_back(seen);
        EXPECT_TRUE(dp > 1 || seen == orders[epoch]) << epoch;
        std::sort(seen.begin(), seen.end());
        EXPECT_EQ(seen, all) << epoch;
      }
    }
  }
  for (std::size_t a = 0; a < orders.size(); ++a) {
    EXPECT_NE(orders[a], all);
    for (std::size_t b = 0; b < a; ++b) EXPECT_NE(orders[a], orders[b]);
  }
}

}  // namespace
}  // namespace troupe::actors
