#include "base/status_error.h"

#include <memory>
#include <stdexcept>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

namespace troupe::base {
namespace {

TEST(StatusErrorTest, CarriesTheStatusToWhoeverCatchesIt) {
  const absl::Status wrong = absl::NotFoundError("no such file");
  EXPECT_EQ(Try([&] { OrThrow(wrong); }), wrong);
  EXPECT_EQ(Try([&] { OrThrow(absl::StatusOr<int>(wrong)); }), wrong);
  try {
    throw StatusError(wrong);
  } catch (const std::exception& error) {
    EXPECT_STREQ(error.what(), "no such file");
  }
}

TEST(StatusErrorTest, WithoutAnErrorTheValueIsReturned) {
  absl::StatusOr<std::unique_ptr<int>> made = std::make_unique<int>(7);
  EXPECT_EQ(*OrThrow(std::move(made)), 7);
  EXPECT_TRUE(Try([] { OrThrow(absl::OkStatus()); }).ok());
}

TEST(StatusErrorTest, OtherExceptionsPassThrough) {
  EXPECT_THROW((void)Try([] { throw std::runtime_error("other"); }),
               std::runtime_error);
}

}  // namespace
}  // namespace troupe::base
