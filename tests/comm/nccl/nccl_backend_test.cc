#include "comm/nccl/nccl_backend.h"

#include "comm/memory_store.h"
#include "gtest/gtest.h"

namespace troupe::comm {
namespace {

TEST(NcclBackendTest, SaysThatThereIsNone) {
  ASSERT_FALSE(HasNccl());
  MemoryStore store;
  NcclGroupOptions options;
  options.name = "replicas";
  options.ranks = {0, 1};
  options.local = {0, 1};
  const absl::Status status = MakeNcclGroup(options, store).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(status.message(),
            "group \"replicas\": this program was built without NCCL, which "
            "reduces between GPUs; build it with --config=cuda");
}

// Stands in for the NCCL backend.
absl::StatusOr<Group> NoGroup(const NcclGroupOptions&, Store&) {
  return Group();
}

TEST(NcclBackendTest, ChecksTheOptions) {
  SetNcclBackend(NoGroup);
  ASSERT_TRUE(HasNccl());
  MemoryStore store;
  NcclGroupOptions good;
  good.name = "replicas";
  good.ranks = {4, 2};
  good.local = {1};
  EXPECT_TRUE(MakeNcclGroup(good, store).ok());
  const auto message = [&](auto change) {
    NcclGroupOptions options = good;
    change(options);
    return std::string(MakeNcclGroup(options, store).status().message());
  };
  const std::string group = "group \"replicas\" by NCCL: ";
  EXPECT_EQ(message([](NcclGroupOptions& o) {
              o.ranks = {4, 4};
            }),
            group + "ranks are none, or one comes twice; name each once");
  EXPECT_EQ(
      message([](NcclGroupOptions& o) { o.local = {2}; }),
      group + "local has no place of ranks, or one twice; name each once");
  EXPECT_EQ(
      message([](NcclGroupOptions& o) { o.local = {}; }),
      group + "local has no place of ranks, or one twice; name each once");
  EXPECT_EQ(message([](NcclGroupOptions& o) { o.in_flight_max = 0; }),
            group + "in_flight_max must be at least 1");
}

}  // namespace
}  // namespace troupe::comm
