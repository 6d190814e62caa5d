#include "actors/supervision/evaluation_track.h"

#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "gtest/gtest.h"

namespace troupe::actors {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

JobSpec Patient(std::int64_t patience, double min_delta = 0) {
  JobSpec spec;
  spec.early_stop_patience = patience;
  spec.early_stop_min_delta = min_delta;
  return spec;
}

class Track {
 public:
  explicit Track(const JobSpec& spec,
                 const std::optional<EvaluationState>& saved = std::nullopt)
      : track_(std::make_shared<const JobSpec>(spec), saved) {}

  // Adds evaluations with these losses, and accuracies that mirror them, after
  // steps 10, 20 and so on. Returns the number of them until the run has
  // converged, or 0.
  int Add(const std::vector<double>& losses) {
    for (std::size_t i = 0; i < losses.size(); ++i) {
      Add(losses[i], /*counts=*/true);
      if (track_.HasConverged()) return static_cast<int>(i) + 1;
    }
    return 0;
  }
  void Add(double loss, bool counts) {
    EvaluationReport report;
    report.step = (step_ += 10);
    report.loss = loss;
    report.accuracy = 1 - loss;
    track_.Add(report, counts);
  }
  EvaluationTrack* operator->() { return &track_; }

 private:
  EvaluationTrack track_;
  std::int64_t step_ = 0;
};

TEST(EvaluationTrackTest, CountsEvaluationsSinceTheLastImprovement) {
  EXPECT_EQ(Track(Patient(2)).Add({5, 4, 4, 3, 3, 3, 2}), 6);
  EXPECT_EQ(Track(Patient(3)).Add({5, 4, 4, 3, 3, 3, 2}), 0);
  EXPECT_EQ(Track(Patient(0)).Add({1, 1, 1, 1, 1, 1, 1, 1}), 0) << "never";
}

TEST(EvaluationTrackTest, AnImprovementIsLargerThanTheDelta) {
  EXPECT_EQ(Track(Patient(2, 0.5)).Add({5, 4.5, 4.75, 1}), 3);
  // Small improvements add up, since each is measured from the last one that
  // counted.
  EXPECT_EQ(Track(Patient(3, 0.5)).Add({5, 4.75, 4.25, 4, 3.5}), 0);
}

TEST(EvaluationTrackTest, AccuracyIsBetterWhenItIsHigher) {
  JobSpec spec = Patient(1);
  spec.checkpoint.best_metric = kEvalAccuracy;
  Track track(spec);
  EXPECT_EQ(track.Add({0.5, 0.25, 0.75}), 3);
  EXPECT_EQ(track->best_step(), 20);
}

TEST(EvaluationTrackTest, NoNumberIsNoImprovement) {
  Track track(Patient(2));
  EXPECT_EQ(track.Add({kNan, kNan}), 2);
  EXPECT_EQ(track->best_step(), 0);
  EXPECT_EQ(track->ToString(), "eval_loss has not improved in 2 evaluations");
  EXPECT_EQ(Track(Patient(2)).Add({1, kNan, 0.5, kNan, kNan}), 5);
}

TEST(EvaluationTrackTest, TheBestIsTheBestByHoweverLittle) {
  Track track(Patient(9, 1));
  track.Add({5, 4.5, 4.5, 4.75});
  EXPECT_EQ(track->best_step(), 20);
}

TEST(EvaluationTrackTest, TheEndOfARunCountsForTheBestAlone) {
  Track track(Patient(1));
  track.Add(1, /*counts=*/false);
  EXPECT_EQ(track->best_step(), 10);
  track.Add(2, /*counts=*/true);
  EXPECT_FALSE(track->HasConverged()) << "the first that counts";
  track.Add(3, /*counts=*/false);
  EXPECT_FALSE(track->HasConverged());
  track.Add(2, /*counts=*/true);
  EXPECT_TRUE(track->HasConverged());
  EXPECT_EQ(track->ToString(),
            "eval_loss has not improved in 1 evaluation; the best, 1, was "
            "after step 10");
}

TEST(EvaluationTrackTest, GoesOnFromWhatItHasSaved) {
  Track whole(Patient(3, 0.5));
  whole.Add({5, 4, 4, 4});
  Track first(Patient(3, 0.5));
  first.Add({5, 4, 4});
  const auto saved = first->StateWith(/*due=*/true);
  ASSERT_TRUE(saved);
  EXPECT_TRUE(saved->due);
  Track second(Patient(3, 0.5), saved);
  EXPECT_TRUE(second->due());
  EXPECT_EQ(second.Add({4}), 0);
  EXPECT_EQ(second->StateWith(false)->waited, whole->StateWith(false)->waited);
  EXPECT_EQ(second.Add({4}), 1);
}

TEST(EvaluationTrackTest, AnotherMetricBeginsAnew) {
  Track first(Patient(1));
  first.Add({5, 4});
  JobSpec spec = Patient(1);
  spec.checkpoint.best_metric = kEvalAccuracy;
  Track second(spec, first->StateWith(/*due=*/false));
  EXPECT_EQ(second->best_step(), 0);
}

TEST(EvaluationTrackTest, NothingIsSavedWhereNothingDependsOnIt) {
  Track track(Patient(0));
  track.Add({5, 4});
  EXPECT_FALSE(track->active());
  EXPECT_FALSE(track->StateWith(/*due=*/false));
}

}  // namespace
}  // namespace troupe::actors
