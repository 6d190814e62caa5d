// Messages between processes survive serialisation to the bit, and errors keep
// their code.

#include "actors/protocol/messages.h"

#include <cmath>
#include <limits>
#include <vector>

#include "actors/caf/status_error.h"
#include "caf/binary_deserializer.hpp"
#include "caf/binary_serializer.hpp"
#include "caf/deep_to_string.hpp"
#include "gtest/gtest.h"

namespace troupe::actors {
namespace {

struct Config : caf::actor_system_config {
  Config() { AddMessageTypes(*this); }
};

class MessagesTest : public testing::Test {
 protected:
  template <typename T>
  T ThereAndBack(T value) {
    std::vector<char> bytes;
    caf::binary_serializer sink(system_, bytes);
    EXPECT_FALSE(sink(value));  // no error
    T back;
    caf::binary_deserializer source(system_, bytes);
    EXPECT_FALSE(source(back));
    return back;
  }

  Config config_;
  caf::actor_system system_{config_};
};

TEST_F(MessagesTest, MetricsTravelAsBits) {
  // CAF's own floats hang on infinities and lose NaNs (docs/caf.md).
  const double values[] = {0.1,
                           -0.0,
                           std::numeric_limits<double>::infinity(),
                           -std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN(),
                           std::numeric_limits<double>::denorm_min()};
  for (double value : values) {
    Progress progress;
    progress.generation = 3;
    progress.rank = 1;
    progress.first = std::int64_t{1} << 40;
    progress.losses = {{Bits(value), Bits(64), Bits(7)}};
    const Progress back = ThereAndBack(progress);
    EXPECT_EQ(back.generation, 3);
    EXPECT_EQ(back.rank, 1);
    EXPECT_EQ(back.first, std::int64_t{1} << 40);
    ASSERT_EQ(back.losses.size(), 1u);
    EXPECT_EQ(back.losses[0].sum, Bits(value));
    EXPECT_EQ(std::isnan(FromBits(back.losses[0].sum)), std::isnan(value));
  }
}

TEST_F(MessagesTest, GrantsFailuresAndEvaluationsTravel) {
  EXPECT_EQ(ThereAndBack(Grant{1, 12345678901}).until, 12345678901);
  Failure failure;
  failure.generation = 4;
  failure.rank = 2;
  failure.actor = "loader";
  failure.code = 5;
  failure.message = "images.idx: offset 16";
  failure.process = 7;
  const Failure back = ThereAndBack(failure);
  EXPECT_EQ(back.generation, 4);
  EXPECT_EQ(back.rank, 2);
  EXPECT_EQ(back.actor, "loader");
  EXPECT_EQ(back.code, 5);
  EXPECT_EQ(back.message, "images.idx: offset 16");
  EXPECT_EQ(back.process, 7);
  Evaluated evaluated;
  evaluated.step = 9;
  evaluated.loss.count = Bits(2000);
  EXPECT_EQ(ThereAndBack(evaluated).loss.count, Bits(2000));
  EXPECT_EQ(ThereAndBack(evaluated).targets, -1);
  evaluated.targets = 7;
  EXPECT_EQ(ThereAndBack(evaluated).targets, 7);
}

TEST_F(MessagesTest, WaitsTravel) {
  EXPECT_EQ(ThereAndBack(AskWaits{3}).generation, 3);
  RankWait wait;
  wait.what = "barrier(), collective 7";
  wait.group = "all ranks";
  wait.collective = 7;
  wait.step = std::int64_t{1} << 40;
  wait.part = "loss";
  wait.ranks = {1, 5};
  wait.begun = true;
  wait.nanos = 12345678901;
  const RankWaits back =
      ThereAndBack(RankWaits{3, 2, "computing", /*busy=*/true, {wait, {}}});
  EXPECT_EQ(back.generation, 3);
  EXPECT_EQ(back.rank, 2);
  EXPECT_EQ(back.doing, "computing");
  EXPECT_TRUE(back.busy);
  ASSERT_EQ(back.waits.size(), 2u);
  EXPECT_EQ(back.waits[0].what, wait.what);
  EXPECT_EQ(back.waits[0].group, wait.group);
  EXPECT_EQ(back.waits[0].collective, 7);
  EXPECT_EQ(back.waits[0].step, wait.step);
  EXPECT_EQ(back.waits[0].part, "loss");
  EXPECT_EQ(back.waits[0].ranks, wait.ranks);
  EXPECT_TRUE(back.waits[0].begun);
  EXPECT_EQ(back.waits[0].nanos, wait.nanos);
}

TEST_F(MessagesTest, ShardsAndOrdersTravel) {
  ShardSaved saved;
  saved.generation = 2;
  saved.step = std::int64_t{1} << 40;
  saved.summary.shard = 3;
  saved.summary.bytes = std::uint64_t{1} << 63;
  saved.summary.files = {"a", "b"};
  saved.summary.tensors = {"0.weight"};
  const ShardSaved back = ThereAndBack(saved);
  EXPECT_EQ(back.generation, 2);
  EXPECT_EQ(back.step, std::int64_t{1} << 40);
  EXPECT_EQ(back.summary.shard, 3);
  EXPECT_EQ(back.summary.bytes, std::uint64_t{1} << 63);
  EXPECT_EQ(back.summary.files, saved.summary.files);
  EXPECT_EQ(back.summary.tensors, saved.summary.tensors);
  CommitCheckpoint commit = {2, 5, "folder", {saved.summary, {}}, {}};
  EXPECT_FALSE(StateOf(ThereAndBack(commit).evaluations));
  commit.evaluations =
      BitsOf(EvaluationState{"eval_loss", 0.1, 400, 0.2, 300, 7, true});
  const auto evaluations = StateOf(ThereAndBack(commit).evaluations);
  ASSERT_TRUE(evaluations);
  EXPECT_EQ(evaluations->metric, "eval_loss");
  EXPECT_EQ(evaluations->best, 0.1);
  EXPECT_EQ(evaluations->best_step, 400);
  EXPECT_EQ(evaluations->reference, 0.2);
  EXPECT_EQ(evaluations->reference_step, 300);
  EXPECT_EQ(evaluations->waited, 7);
  EXPECT_TRUE(evaluations->due);
  EXPECT_EQ(ThereAndBack(commit).shards.size(), 2u);
  EXPECT_EQ(ThereAndBack(commit).folder, "folder");
  EXPECT_EQ(ThereAndBack(EndRank{2, 9, "why"}).message, "why");
  EXPECT_EQ(ThereAndBack(SaveShard{2, 5, 3, 1, 2, "folder"}).writers, 2);
  EXPECT_EQ(ThereAndBack(CheckpointSaved{2, 5, "path"}).path, "path");
  EXPECT_EQ(ThereAndBack(CheckpointOpened{2, 5, "path"}).folder, "path");
  EXPECT_EQ(ThereAndBack(SnapshotTaken{2, 1, 5, {}}).rank, 1);
  EXPECT_EQ(ThereAndBack(TakeSnapshot{2, 5}).step, 5);
  EXPECT_TRUE(ThereAndBack(TakeSnapshot{2, 5}).copies);
  EXPECT_FALSE(ThereAndBack(TakeSnapshot{2, 5, false}).copies);
  EXPECT_TRUE(ThereAndBack(TakeSnapshot{2, 5, false, true}).compares);
  EXPECT_TRUE(ThereAndBack(TakeSnapshot{2, 5, true, false, true}).in_place);
  const std::vector<std::uint64_t> hashes = {7, ~std::uint64_t{0}};
  EXPECT_EQ(ThereAndBack(SnapshotTaken{2, 1, 5, hashes}).hashes, hashes);
  ShardSummary shard;
  shard.states = {"w.momentum"};
  shard.writer = 1;
  shard.written_bytes = 96;
  shard.sums = {7, ~std::uint64_t{0}};
  const ShardSummary moved = ThereAndBack(ShardSaved{2, 5, shard}).summary;
  EXPECT_EQ(moved.states, shard.states);
  EXPECT_EQ(moved.writer, 1);
  EXPECT_EQ(moved.written_bytes, 96u);
  EXPECT_EQ(moved.sums, shard.sums);
  EXPECT_EQ(ThereAndBack(BeginCheckpoint{2, 5}).step, 5);
  EXPECT_EQ(ThereAndBack(Evaluate{2, 5}).step, 5);
  EXPECT_EQ(ThereAndBack(Alive{2, 1}).rank, 1);
}

TEST_F(MessagesTest, ThePrintedFormAndTheBytesFollowTheOrderOfFields) {
  RankWait wait;
  wait.what = "barrier";
  wait.ranks = {1, 5};
  wait.nanos = 7;
  EXPECT_EQ(caf::deep_to_string(RankWaits{3, 2, "idle", false, {wait}}),
            "troupe.rank_waits(3, 2, \"idle\", false, [troupe.rank_wait("
            "\"barrier\", \"\", -1, -1, \"\", [1, 5], false, 7)])");
  EXPECT_EQ(caf::deep_to_string(BeginCheckpoint{2, 5}),
            "troupe.open_checkpoint(2, 5)");
  Grant grant = {1, 2};
  std::vector<char> bytes;
  caf::binary_serializer sink(system_, bytes);
  EXPECT_FALSE(sink(grant));  // no error
  EXPECT_EQ(bytes, (std::vector<char>{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2}));
}

TEST_F(MessagesTest, StatusesSurviveErrors) {
  const absl::Status status = absl::DataLossError("offset 16: truncated");
  EXPECT_EQ(FromError(system_, ToError(status)), status);
  EXPECT_TRUE(FromError(system_, ToError(absl::OkStatus())).ok());
}

TEST_F(MessagesTest, FrameworkErrorsBecomeStatuses) {
  EXPECT_EQ(FromError(system_, caf::sec::request_timeout).code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(FromError(system_, caf::sec::runtime_error).code(),
            absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace troupe::actors
