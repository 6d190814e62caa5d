#include "tools/bench/overlap/step_times.h"

#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace troupe::bench {
namespace {

std::string Write(const std::string& text) {
  const std::string path = testing::TempDir() + "/step_times_test.json";
  std::ofstream(path) << text;
  return path;
}

std::string Event(const std::string& name, const std::string& category,
                  const std::string& phase, double micros, int step,
                  int rank = 0) {
  return absl::StrCat(R"({"name":")", name, R"(","cat":")", category,
                      R"(","ph":")", phase, R"(","pid":)", rank, R"(,"ts":)",
                      micros, R"(,"args":{"step":)", step, "}}");
}

// Returns the events of step n, which begins at `begin`; its first bucket is
// ready `bucket` later, and it ends `end` later.
std::string Step(int n, double begin, double bucket, double end) {
  return absl::StrCat(
      Event("F0", "action", "B", begin, n), ",",
      Event("F0", "action", "E", begin + 1, n), ",",
      Event("bucket ready", "bucket", "i", begin + bucket, n), ",",
      Event("bucket ready", "bucket", "i", begin + bucket + 9, n), ",",
      Event("UP0", "update", "E", begin + end - 5, n), ",",
      Event("UP1", "update", "E", begin + end, n), ",",
      Event("F0", "action", "B", begin + 30, n, /*rank=*/1));
}

TEST(StepTimesTest, TakesMediansBehindTheFirst) {
  const std::string path = Write(absl::StrCat(
      R"({"traceEvents":[{"ph":"M","pid":0,"name":"process_name"},)",
      Step(1, 500, 300, 900), ",", Step(2, 1500, 100, 500), ",",
      Step(3, 2100, 110, 450), ",", Step(4, 2620, 150, 400), ",",
      Step(5, 3110, 1, 1), "]}"));
  const absl::StatusOr<StepTimes> times = ReadStepTimes(path, /*skip=*/1);
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_DOUBLE_EQ(times->step_ms, 0.520);
  EXPECT_DOUBLE_EQ(times->to_first_bucket_ms, 0.110);
  EXPECT_DOUBLE_EQ(times->first_step_ms, 0.870);
}

TEST(StepTimesTest, SaysWhatIsMissing) {
  EXPECT_EQ(ReadStepTimes("nowhere.json", 0).status().message(),
            "there is no nowhere.json; write it by trainer train "
            "--trace=nowhere.json");
  for (const char* text : {"not json", "{}", "[1]", R"({"traceEvents":[]})"}) {
    EXPECT_EQ(ReadStepTimes(Write(text), 0).status().code(),
              absl::StatusCode::kOutOfRange)
        << text;
  }
}

}  // namespace
}  // namespace troupe::bench
