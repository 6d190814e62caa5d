#include "tools/trainer/config/config_blame.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "gtest/gtest.h"
#include "tools/trainer/config/config_keys.h"

namespace troupe::tools {
namespace {

// Each field that a key sets is found by its name in errors.
TEST(AtKeys, EveryFieldLeadsBackToItsKey) {
  LoadedConfig loaded;
  loaded.file = "run.toml";
  int line = 0;
  for (const ConfigKey& key : ConfigKeys()) {
    loaded.origins[key.name] = absl::StrCat("run.toml:", ++line);
  }
  for (const ConfigKey& key : ConfigKeys()) {
    const absl::Status error = base::WithFields(
        absl::NotFoundError(key.field.name() + " is not right"),
        {key.field.name()});
    EXPECT_EQ(AtKeys(loaded, error),
              absl::NotFoundError(absl::StrCat(loaded.Where(key.name), ": ",
                                               key.name, " is not right")));
  }
}

TEST(AtKeys, ErrorsThatBlameNoKeyHaveNoPlace) {
  LoadedConfig loaded;
  loaded.origins["train.stop_on_nan"] = "run.toml:3";
  // An error of an actor: messages do not carry the fields that it blames.
  EXPECT_EQ(AtKeys(loaded, absl::FailedPreconditionError(
                               "rank 0: nan; set JobSpec.stop_on_nan = false")),
            absl::FailedPreconditionError(
                "rank 0: nan; set train.stop_on_nan = false"));
  const absl::Status unknown = base::WithFields(
      absl::InvalidArgumentError("Wheel.spokes = -1"), {"Wheel.spokes"});
  EXPECT_EQ(AtKeys(loaded, unknown), unknown);
  EXPECT_EQ(AtKeys(loaded, absl::InternalError("a bug")),
            absl::InternalError("a bug"));
  EXPECT_TRUE(AtKeys(loaded, absl::OkStatus()).ok());
}

}  // namespace
}  // namespace troupe::tools
