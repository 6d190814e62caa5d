#include "nn/kernels/cuda/libraries/plan_cache.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace troupe::nn::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct FakeSpec {
  int shape = 0;
  bool valid = true;

  std::string Key() const { return absl::StrCat("shape:", shape); }
  absl::Status Check() const {
    return valid ? absl::OkStatus() : absl::InvalidArgumentError("not valid");
  }
  friend bool operator==(const FakeSpec& a, const FakeSpec& b) {
    return a.shape == b.shape;
  }
  template <typename H>
  friend H AbslHashValue(H h, const FakeSpec& spec) {
    return H::combine(std::move(h), spec.shape);
  }
};

class FakePlan {
 public:
  explicit FakePlan(std::string choice) : choice_(std::move(choice)) {}
  const std::string& choice() const { return choice_; }

 private:
  const std::string choice_;
};

// A library whose algorithms are names; the test sets their times.
struct FakeLibrary {
  using Spec = FakeSpec;
  using Plan = FakePlan;
  using Stream = int;
  using Plans = std::vector<std::unique_ptr<Plan>>;

  absl::StatusOr<std::unique_ptr<Plan>> FromChoice(const Spec&,
                                                   const std::string& choice) {
    for (const std::string& algorithm : algorithms) {
      if (algorithm == choice) return std::make_unique<Plan>(choice);
    }
    return absl::InvalidArgumentError(absl::StrCat("no ", choice));
  }
  absl::StatusOr<Plans> Candidates(const Spec&) {
    ++asked;
    Plans plans;
    for (const std::string& algorithm : algorithms) {
      plans.push_back(std::make_unique<Plan>(algorithm));
    }
    return plans;
  }
  absl::StatusOr<bool> IsCapturing(Stream stream) { return stream == 1; }
  absl::StatusOr<std::vector<CandidateTimes>> Time(const Spec&,
                                                   const Plans& candidates,
                                                   Stream) {
    ++measured;
    EXPECT_EQ(candidates.size(), algorithms.size());
    const auto measured_now = times;
    if (on_time) on_time();
    return measured_now;
  }

  std::vector<std::string> algorithms = {"a", "b", "c"};
  absl::StatusOr<std::vector<CandidateTimes>> times =
      std::vector<CandidateTimes>{{3}, {2}, {1}};
  std::function<void()> on_time;  // called while it measures
  int asked = 0;
  int measured = 0;
};

// An interface like MatmulPlans.
class FakePlans {
 public:
  virtual ~FakePlans() = default;
  virtual absl::StatusOr<FakePlan*> Get(const FakeSpec& spec, int stream) = 0;
};

class PlanCacheTest : public ::testing::Test {
 protected:
  static constexpr int kStream = 0, kCapturing = 1;

  PlanCacheTest() {
    options_.choices = &choices_;
    options_.warn = [this](absl::string_view line) {
      warnings_.emplace_back(line);
    };
  }
  // Returns the choice of a new cache for shape 5.
  std::string Chosen(int stream = kStream) {
    PlanCache<FakeLibrary> plans(library_, options_);
    const absl::StatusOr<FakePlan*> plan = plans.Get({5}, stream);
    return plan.ok() ? (*plan)->choice() : plan.status().ToString();
  }

  FakeLibrary library_;
  DeviceChoices choices_{"a device"};
  LibraryOptions options_;
  std::vector<std::string> warnings_;
};

TEST_F(PlanCacheTest, MeasuresOnceAndRemembers) {
  PlanCache<FakeLibrary> plans(library_, options_);
  const absl::StatusOr<FakePlan*> first = plans.Get({5}, kStream);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ((*first)->choice(), "c");
  library_.times = std::vector<CandidateTimes>{{1}, {2}, {3}};
  EXPECT_EQ(*plans.Get({5}, kStream), *first);
  EXPECT_EQ(library_.measured, 1);
  EXPECT_EQ((*plans.Get({6}, kStream))->choice(), "a");
  EXPECT_EQ(*choices_.Find("shape:5"), "c");
  EXPECT_EQ(*choices_.Find("shape:6"), "a");
}

TEST_F(PlanCacheTest, WhatIsOnRecordIsTakenAsItIs) {
  choices_.Agree("shape:5", "b", Origin::kDisk);
  EXPECT_EQ(Chosen(), "b");
  EXPECT_EQ(Chosen(kCapturing), "b");
  EXPECT_EQ(library_.asked + library_.measured, 0);
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(PlanCacheTest, ARecordThatTheLibraryRefusesIsReplacedAloud) {
  choices_.Agree("shape:5", "x", Origin::kDisk);
  EXPECT_EQ(Chosen(), "c");
  EXPECT_EQ(*choices_.Find("shape:5"), "c");
  EXPECT_THAT(warnings_,
              ElementsAre(HasSubstr("shape:5 is chosen anew, and may give "
                                    "other last bits: no x")));
}

TEST_F(PlanCacheTest, NothingIsMeasuredWhileAStreamCaptures) {
  PlanCache<FakeLibrary> plans(library_, options_);
  EXPECT_EQ((*plans.Get({5}, kCapturing))->choice(), "a");
  EXPECT_EQ(library_.measured, 0);
  // Later eager steps therefore give the same bits as the captured one.
  EXPECT_EQ((*plans.Get({5}, kStream))->choice(), "a");
  EXPECT_EQ(library_.measured, 0);
}

// Later runs also use a guess, because it decides the bits like any choice.
TEST_F(PlanCacheTest, AGuessIsRecordedForThePlan) {
  options_.measure = false;
  EXPECT_EQ(Chosen(), "a");
  EXPECT_EQ(library_.measured, 0);
  EXPECT_EQ(*choices_.Find("shape:5"), "a");
}

// Two ranks measure at the same time and get different times.
TEST_F(PlanCacheTest, TheFirstRankChoosesForAll) {
  PlanCache<FakeLibrary> first(library_, options_);
  library_.on_time = [&] {
    library_.on_time = nullptr;
    EXPECT_EQ((*first.Get({5}, kStream))->choice(), "c");
    library_.times = std::vector<CandidateTimes>{{3}, {1}, {2}};
  };
  EXPECT_EQ(Chosen(), "c");
  EXPECT_EQ(library_.measured, 2);
  // A choice that only the other rank's library has.
  choices_.Agree("shape:6", "x", Origin::kMeasured);
  library_.times = std::vector<CandidateTimes>{{3}, {1}, {2}};
  PlanCache<FakeLibrary> second(library_, options_);
  EXPECT_EQ((*second.Get({6}, kStream))->choice(), "b");
}

TEST_F(PlanCacheTest, WithoutARecordItMeasuresAllTheSame) {
  options_.choices = nullptr;
  EXPECT_EQ(Chosen(), "c");
}

TEST_F(PlanCacheTest, WithoutMemoryToMeasureInItTakesTheGuessAloud) {
  library_.times = absl::ResourceExhaustedError("80 GiB are in use");
  EXPECT_EQ(Chosen(), "a");
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("80 GiB are in use")));
}

TEST_F(PlanCacheTest, CandidatesThatFailAreNotChosen) {
  library_.times = std::vector<CandidateTimes>{{3}, {2}, {}};
  EXPECT_EQ(Chosen(), "b");
  library_.times = std::vector<CandidateTimes>{{}, {}, {}};
  choices_.Agree("shape:5", "x", Origin::kDisk, /*refused=*/"b");
  EXPECT_THAT(Chosen(), HasSubstr("every algorithm of the library failed"));
}

TEST_F(PlanCacheTest, ThatThereIsNoneIsRemembered) {
  library_.algorithms.clear();
  PlanCache<FakeLibrary> plans(library_, options_);
  for (int i = 0; i < 3; ++i) {
    const absl::Status status = plans.Get({5}, kStream).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(status.message()), HasSubstr("shape:5"));
  }
  EXPECT_EQ(library_.asked, 1);
}

TEST_F(PlanCacheTest, OtherErrorsAreHandedOnAndNotKept) {
  library_.times = absl::InternalError("the device failed");
  PlanCache<FakeLibrary> plans(library_, options_);
  EXPECT_EQ(plans.Get({5}, kStream).status().code(),
            absl::StatusCode::kInternal);
  library_.times = std::vector<CandidateTimes>{{1}, {2}, {3}};
  EXPECT_TRUE(plans.Get({5}, kStream).ok());
  EXPECT_EQ(plans.Get({7, /*valid=*/false}, kStream).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(PlanCacheTest, LibraryPlansChooseAsTheCacheDoes) {
  library_.times = std::vector<CandidateTimes>{{3}, {1}, {2}};
  const std::unique_ptr<FakePlans> plans =
      std::make_unique<LibraryPlans<FakeLibrary, FakePlans>>(options_,
                                                             library_);
  const absl::StatusOr<FakePlan*> plan = plans->Get({5}, kStream);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ((*plan)->choice(), "b");
  EXPECT_EQ(*plans->Get({5}, kStream), *plan);
}

}  // namespace
}  // namespace troupe::nn::cuda
