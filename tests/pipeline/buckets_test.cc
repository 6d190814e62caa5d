#include "pipeline/buckets.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "nn/random/philox.h"

namespace troupe::pipeline {
namespace {

using Sizes = std::vector<std::int64_t>;

// Returns "4 3 | 2 1 | 0": the parameters' indices, bucket by bucket.
std::string Picture(const std::vector<std::vector<int>>& buckets) {
  return absl::StrJoin(buckets, " | ", [](std::string* out, const auto& b) {
    absl::StrAppend(out, absl::StrJoin(b, " "));
  });
}

std::string Assigned(const Sizes& bytes, std::int64_t first_bucket_bytes,
                     std::int64_t bucket_bytes) {
  return Picture(AssignBuckets(bytes, {first_bucket_bytes, bucket_bytes}));
}

TEST(BucketsTest, TheLastParametersTravelFirst) {
  EXPECT_EQ(Assigned({4, 4, 4, 4, 4}, 8, 8), "4 3 | 2 1 | 0");
}

TEST(BucketsTest, TheFirstLimitIsForTheFirstBucketOnly) {
  EXPECT_EQ(Assigned({4, 4, 4, 4, 4}, 4, 12), "4 | 3 2 1 | 0");
  EXPECT_EQ(Assigned({4, 4, 4, 4, 4}, 12, 4), "4 3 2 | 1 | 0");
}

TEST(BucketsTest, ABucketMayBeFilledToItsLimit) {
  EXPECT_EQ(Assigned({9, 7, 8, 2, 6}, 8, 15), "4 3 | 2 1 | 0");
  EXPECT_EQ(Assigned({9, 7, 9, 2, 6}, 8, 15), "4 3 | 2 | 1 | 0");
}

TEST(BucketsTest, WhatIsLargerThanTheLimitTravelsAlone) {
  EXPECT_EQ(Assigned({1, 1, 99, 1, 1}, 8, 8), "4 3 | 2 | 1 0");
  EXPECT_EQ(Assigned({1, 1, 1, 99}, 8, 8), "3 | 2 1 0");
  EXPECT_EQ(Assigned({99, 1}, 8, 8), "1 | 0");
  EXPECT_EQ(Assigned({99, 99, 99}, 8, 8), "2 | 1 | 0");
}

TEST(BucketsTest, NoLimitMeansABucketForEach) {
  EXPECT_EQ(Assigned({4, 4, 4}, 1, 1), "2 | 1 | 0");
}

TEST(BucketsTest, FewParameters) {
  EXPECT_EQ(Assigned({}, 8, 8), "");
  EXPECT_EQ(Assigned({4}, 8, 8), "0");
  EXPECT_EQ(Assigned({0, 0}, 8, 8), "1 0");
}

// The defaults of torch.nn.parallel.DistributedDataParallel: 1 MiB, 25 MiB.
TEST(BucketsTest, TheDefaultLimitsArePyTorchs) {
  const BucketOptions options;
  EXPECT_EQ(options.first_bucket_bytes, 1048576);
  EXPECT_EQ(options.bucket_bytes, 26214400);
  // An MLP of 784-4096-4096-10: weights and biases in forward order, in bytes.
  const Sizes bytes = {12845056, 16384, 67108864, 16384, 163840, 40};
  EXPECT_EQ(Picture(AssignBuckets(bytes, options)), "5 4 3 | 2 | 1 0");
}

// The order is part of the contract, and a bucket is as full as it can be.
TEST(BucketsTest, HoldsForRandomSizes) {
  nn::RandomStream draws(nn::RandomKey(1, nn::Purpose::kTest), {});
  for (int round = 0; round < 2000; ++round) {
    Sizes bytes(draws.Below(30));
    for (std::int64_t& size : bytes) size = draws.Below(40);
    const BucketOptions options = {static_cast<std::int64_t>(draws.Below(50)),
                                   static_cast<std::int64_t>(draws.Below(80))};
    const auto buckets = AssignBuckets(bytes, options);
    int next = static_cast<int>(bytes.size()) - 1;
    for (std::size_t k = 0; k < buckets.size(); ++k) {
      ASSERT_FALSE(buckets[k].empty());
      const std::int64_t limit =
          k == 0 ? options.first_bucket_bytes : options.bucket_bytes;
      std::int64_t sum = 0;
      for (int i : buckets[k]) {
        ASSERT_EQ(i, next--) << "every number once, from the last to the first";
        sum += bytes[i];
      }
      ASSERT_TRUE(sum <= limit || buckets[k].size() == 1) << Picture(buckets);
      if (next >= 0 && k + 1 < buckets.size()) {
        ASSERT_GT(sum + bytes[next], limit) << "closed too early";
      }
    }
    ASSERT_EQ(next, -1);
  }
}

}  // namespace
}  // namespace troupe::pipeline
