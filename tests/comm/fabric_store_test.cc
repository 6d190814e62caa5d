#include "comm/fabric_store.h"

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/seeds.h"
#include "tests/comm/sim_world.h"

namespace troupe::comm {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t kChannel = 2;

// The store of a process of the world, which lives longer.
std::unique_ptr<FabricStore> StoreOf(SimWorld& world, int process) {
  return std::make_unique<FabricStore>(
      std::shared_ptr<Fabric>(&world.fabric(process), [](Fabric*) {}),
      kChannel);
}

SimWorldOptions Processes(int processes, std::uint64_t seed) {
  SimWorldOptions options;
  for (int p = 0; p < processes; ++p) options.process_of.push_back(p);
  options.seed = seed;
  options.eager_bytes = 100;
  options.piece_bytes = 256;
  return options;
}

TEST(FabricStoreTest, WhatOneSetsAllGet) {
  for (const std::uint64_t seed : Seeds(20)) {
    SCOPED_TRACE(ReplayCommand(seed));
    SimWorld world(Processes(3, seed));
    const auto first = StoreOf(world, 0), second = StoreOf(world, 1);
    // Bytes of any kind, and keys of which one is the beginning of another.
    const std::string bytes("\0\n\xff 7", 5);
    const std::string large(5000, static_cast<char>(seed));
    EXPECT_TRUE(first->Set("id", bytes).ok());
    EXPECT_TRUE(first->Set("id/2", large).ok());
    EXPECT_TRUE(second->Set("", "by 1").ok());
    EXPECT_EQ(*first->Get("id", absl::ZeroDuration()), bytes);
    while (world.Progress()) {
    }
    // Values that came before the store are kept for it.
    const auto third = StoreOf(world, 2);
    while (world.Progress()) {
    }
    for (FabricStore* store : {first.get(), second.get(), third.get()}) {
      EXPECT_EQ(*store->Get("id", absl::ZeroDuration()), bytes);
      EXPECT_EQ(*store->Get("id/2", absl::ZeroDuration()), large);
      EXPECT_EQ(*store->Get("", absl::ZeroDuration()), "by 1");
      EXPECT_TRUE(absl::IsDeadlineExceeded(
          store->Get("id/3", absl::ZeroDuration()).status()));
    }
    EXPECT_TRUE(first->Set("id", "a later one").ok());
    while (world.Progress()) {
    }
    EXPECT_EQ(*third->Get("id", absl::ZeroDuration()), "a later one");
  }
}

TEST(FabricStoreTest, RefusesWhatIsTooLargeAndWhatIsNoValue) {
  SimWorldOptions options = Processes(2, /*seed=*/1);
  std::string lost;
  options.on_lost = [&](int, int, const absl::Status& why) {
    absl::StrAppend(&lost, why.message(), "; ");
  };
  SimWorld world(options);
  const auto sender = StoreOf(world, 0), receiver = StoreOf(world, 1);
  const absl::Status status =
      sender->Set("id", std::string(FabricStore::kBytesMax, 'a'));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("65536 bytes together"));
  EXPECT_FALSE(sender->Set("", "").ok());
  EXPECT_TRUE(
      world.fabric(0).SendParcel(1, kChannel, "7", nn::Tensor(), Event()).ok());
  while (world.Progress()) {
  }
  EXPECT_THAT(lost, HasSubstr("0 bytes with a key of \"7\""));
}

}  // namespace
}  // namespace troupe::comm
