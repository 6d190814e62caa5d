#include "actors/checkpoint/plan_file.h"

#include <errno.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "pipeline/plan_json.h"
#include "tests/base/faulty_file_system.h"
#include "tests/base/fresh_path.h"
#include "tests/pipeline/plan_fixture.h"

namespace troupe::actors {
namespace {

class PlanFileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = base::FreshPath();
    ASSERT_TRUE(files_.CreateFolder(folder_).ok());
  }
  absl::Status Put(const std::string& text) {
    return base::WriteWholeFile(files_, folder_ + "/plan.json", text);
  }

  base::PosixFileSystem files_;
  std::string folder_;
};

TEST_F(PlanFileTest, ReadsWhatItWrites) {
  const pipeline::Plan plan = pipeline::NestedPlan();
  ASSERT_TRUE(WritePlanFile(files_, folder_, plan).ok());
  const auto read = ReadPlanFile(files_, folder_);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_TRUE(read->has_value());
  EXPECT_EQ(pipeline::PlanHash(**read), pipeline::PlanHash(plan));
}

TEST_F(PlanFileTest, AnOldCheckpointHasNone) {
  const auto read = ReadPlanFile(files_, folder_);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_FALSE(read->has_value());
}

TEST_F(PlanFileTest, ADamagedOneIsNamed) {
  ASSERT_TRUE(Put("{}").ok());
  EXPECT_EQ(
      ReadPlanFile(files_, folder_).status(),
      absl::DataLossError(absl::StrCat(
          folder_, "/plan.json cannot be used: plan: format is missing")));
  ASSERT_TRUE(Put(std::string(pipeline::kPlanBytesMax + 1, ' ')).ok());
  EXPECT_EQ(ReadPlanFile(files_, folder_).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(PlanFileTest, AFullDiskIsAnError) {
  base::FaultyFileSystem full;
  full.FailAt(1, ENOSPC);
  EXPECT_FALSE(WritePlanFile(full, folder_, pipeline::SmallPlan()).ok());
}

}  // namespace
}  // namespace troupe::actors
