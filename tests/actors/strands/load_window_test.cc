#include "actors/strands/load_window.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "nn/tensor/allocator.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {
namespace {

class LoadWindowTest : public testing::Test {
 protected:
  // Returns `count` steps of one batch of about `bytes`.
  Loaded Steps(StepKind kind, std::int64_t first, std::int64_t count,
               std::int64_t bytes) {
    Loaded loaded{kind, first, {}};
    for (std::int64_t i = 0; i < count; ++i) {
      data::Batch batch;
      batch.inputs =
          nn::Tensor::Empty({bytes / 8}, nn::DType::kF32, allocator_);
      batch.targets =
          nn::Tensor::Empty({bytes / 8}, nn::DType::kF32, allocator_);
      loaded.steps.push_back({batch});
    }
    return loaded;
  }
  // Answers a request when the data has `there` steps left.
  void Answer(LoadWindow& window, const LoadRequest& request,
              std::int64_t there, std::int64_t bytes) {
    const std::int64_t count = std::min(request.count, there);
    window.OnLoaded(Steps(request.kind, request.first, count, bytes),
                    request.count);
  }

  nn::CachingAllocator allocator_;
};

TEST_F(LoadWindowTest, TheFirstAnswerChoosesTheChunk) {
  LoadWindow window({StepKind::kTrain, /*first=*/10, /*end=*/1000,
                     /*ahead_max=*/1});
  const auto first = window.NextRequest();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->first, 10);
  EXPECT_EQ(first->count, 1);
  EXPECT_FALSE(window.NextRequest()) << "how large a step is, is not known";
  Answer(window, *first, 1000, /*bytes=*/1 << 18);
  const auto second = window.NextRequest();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->first, 11);
  EXPECT_EQ(second->count, 3) << "of a quarter of 1 MiB, and a little more";
}

TEST_F(LoadWindowTest, CreditsBoundWhatIsAhead) {
  LoadWindow window({StepKind::kTrain, 0, 1000, /*ahead_max=*/4});
  Answer(window, *window.NextRequest(), 1000, /*bytes=*/4 << 20);
  std::vector<LoadRequest> requests;
  while (auto request = window.NextRequest()) requests.push_back(*request);
  EXPECT_EQ(requests.size(), 3u) << "and the one that is loaded";
  EXPECT_FALSE(window.NextRun(/*until=*/0)) << "nothing is granted";
  const auto run = window.NextRun(/*until=*/1);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->first, 0);
  EXPECT_EQ(run->steps.size(), 1u);
  EXPECT_TRUE(window.NextRequest()) << "its credit is free again";
  EXPECT_FALSE(window.NextRequest());
}

TEST_F(LoadWindowTest, AGrantMayCutAChunk) {
  LoadWindow window({StepKind::kTrain, 0, 7, /*ahead_max=*/4});
  Answer(window, *window.NextRequest(), 7, /*bytes=*/8);
  const auto rest = window.NextRequest();
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->count, 6) << "no further than the end";
  Answer(window, *rest, 7, 8);
  EXPECT_EQ(window.NextRun(5)->steps.size(), 1u);
  EXPECT_EQ(window.NextRun(5)->steps.size(), 4u);
  EXPECT_FALSE(window.NextRun(5));
  EXPECT_FALSE(window.finished());
  const auto last = window.NextRun(7);
  EXPECT_EQ(last->first, 5);
  EXPECT_EQ(last->steps.size(), 2u);
  EXPECT_TRUE(window.finished());
}

TEST_F(LoadWindowTest, AShortAnswerEndsTheData) {
  LoadWindow::Options options;
  options.kind = StepKind::kEvaluate;
  options.ahead_max = 4;
  options.run_steps_max = 1;
  LoadWindow window(options);
  Answer(window, *window.NextRequest(), 1, /*bytes=*/4 << 20);
  std::vector<LoadRequest> requests;
  while (auto request = window.NextRequest()) requests.push_back(*request);
  ASSERT_EQ(requests.size(), 3u);
  Answer(window, requests[0], 1, 4 << 20);
  while (window.NextRun(100)) {
  }
  Answer(window, requests[1], 0, 4 << 20);  // the data end at 2
  EXPECT_FALSE(window.NextRequest());
  EXPECT_FALSE(window.finished()) << "an answer is to come";
  Answer(window, requests[2], 0, 4 << 20);
  EXPECT_TRUE(window.finished());
}

TEST_F(LoadWindowTest, NothingAtAllIsFinishedAtOnce) {
  LoadWindow none({StepKind::kTrain, 5, 5, 1});
  EXPECT_FALSE(none.NextRequest());
  EXPECT_TRUE(none.finished());
  LoadWindow::Options options;
  options.kind = StepKind::kEvaluate;
  LoadWindow empty(options);
  Answer(empty, *empty.NextRequest(), 0, 8);
  EXPECT_TRUE(empty.finished());
}

}  // namespace
}  // namespace troupe::actors
