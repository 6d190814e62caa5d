// Tests of event files, read by an independent reader: it has its own CRC and
// parses the wire format of protocol buffers itself.

#include "tools/trainer/metrics/tensorboard_log.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/files/file_system.h"
#include "gtest/gtest.h"
#include "tests/base/fresh_path.h"

namespace troupe::tools {
namespace {

// Computes CRC-32C bit by bit.
std::uint32_t PlainCrc32c(absl::string_view bytes) {
  std::uint32_t crc = 0xffffffff;
  for (char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78u : 0);
    }
  }
  return ~crc;
}

std::uint32_t Masked(std::uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

template <typename Number>
Number Take(absl::string_view& bytes) {
  Number value = 0;
  EXPECT_GE(bytes.size(), sizeof(value));
  std::memcpy(&value, bytes.data(), std::min(sizeof(value), bytes.size()));
  bytes.remove_prefix(std::min(sizeof(value), bytes.size()));
  return value;
}

// Returns the records of a file and expects valid checksums.
std::vector<std::string> Records(absl::string_view bytes) {
  std::vector<std::string> records;
  while (!bytes.empty() && !testing::Test::HasFailure()) {
    const absl::string_view length_bytes = bytes.substr(0, 8);
    const auto length = Take<std::uint64_t>(bytes);
    EXPECT_EQ(Take<std::uint32_t>(bytes), Masked(PlainCrc32c(length_bytes)));
    records.emplace_back(bytes.substr(0, length));
    bytes.remove_prefix(std::min<std::size_t>(length, bytes.size()));
    EXPECT_EQ(Take<std::uint32_t>(bytes), Masked(PlainCrc32c(records.back())));
  }
  return records;
}

std::uint64_t TakeVarint(absl::string_view& bytes) {
  std::uint64_t value = 0;
  for (int shift = 0; !bytes.empty(); shift += 7) {
    const unsigned char byte = bytes[0];
    bytes.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) break;
  }
  return value;
}

// Returns a message as text: "1:1767323045.5 2:100 5:{1:{1:'train/loss'
// 2:0.5}}". A field's number and depth tell texts from messages.
std::string MessageText(absl::string_view bytes, int depth = 0) {
  std::vector<std::string> fields;
  while (!bytes.empty()) {
    const std::uint64_t tag = TakeVarint(bytes);
    std::string value;
    switch (tag & 7) {
      case 0:
        value = absl::StrCat(TakeVarint(bytes));
        break;
      case 1:
        value = absl::StrCat(Take<double>(bytes));
        break;
      case 5:
        value = absl::StrCat(Take<float>(bytes));
        break;
      case 2: {
        const std::uint64_t size = TakeVarint(bytes);
        const absl::string_view inside = bytes.substr(0, size);
        bytes.remove_prefix(inside.size());
        const bool is_text = (tag >> 3) == 3 || depth == 2;
        value = is_text
                    ? absl::StrCat("'", inside, "'")
                    : absl::StrCat("{", MessageText(inside, depth + 1), "}");
        break;
      }
      default:
        ADD_FAILURE() << "wire type " << (tag & 7);
        return "";
    }
    fields.push_back(absl::StrCat(tag >> 3, ":", value));
  }
  return absl::StrJoin(fields, " ");
}

class TensorBoardLogTest : public testing::Test {
 protected:
  // Returns the events of the file with this name.
  std::vector<std::string> Events(const std::string& name) {
    const auto bytes =
        base::ReadWholeFile(files_, folder_ + "/" + name, 1 << 20);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    std::vector<std::string> events;
    for (const std::string& record : Records(bytes.value_or(""))) {
      events.push_back(MessageText(record));
    }
    return events;
  }

  base::PosixFileSystem files_;
  const std::string folder_ = base::FreshPath() + "/deep";
  const absl::Time time_ = absl::FromUnixMillis(1024500);
};

TEST_F(TensorBoardLogTest, ChecksumsAreCastagnolis) {
  EXPECT_EQ(PlainCrc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(RecordChecksum("123456789"), Masked(0xe3069283u));
  EXPECT_EQ(RecordChecksum(""), Masked(0));
}

TEST_F(TensorBoardLogTest, AFileIsNamedAfterTimeHostAndProcess) {
  EXPECT_EQ((EventFileName{absl::FromUnixSeconds(1767323045), "node3", 4711})
                .ToString(),
            "events.out.tfevents.1767323045.node3.4711");
}

TEST_F(TensorBoardLogTest, ScalarsComeBack) {
  auto log = TensorBoardLog::Open(files_, folder_, {time_, "host", 7});
  ASSERT_TRUE(log.ok()) << log.status();
  StartEntry start;
  start.time = time_;
  ASSERT_TRUE(log->OnStart(start).ok());
  StepEntry step;
  step.step = 300;
  step.loss = 0.5;
  step.accuracy = 0.75;
  step.lr = 0.125;
  step.grad_norm = 2.5;
  step.samples_per_s = 1024;
  step.time = time_ + absl::Seconds(1);
  ASSERT_TRUE(log->OnStep(step).ok());
  EvaluationEntry evaluation;
  evaluation.step = 300;
  evaluation.loss = 0.25;
  evaluation.accuracy = 0.5;
  evaluation.time = time_ + absl::Seconds(2);
  ASSERT_TRUE(log->OnEvaluation(evaluation).ok());
  EXPECT_EQ(Events("events.out.tfevents.0000001024.host.7"),
            (std::vector<std::string>{
                "1:1024.5 3:'brain.Event:2'",
                "1:1024.5 2:1 7:{1:1}",
                "1:1025.5 2:300 5:{1:{1:'train/loss' 2:0.5} "
                "1:{1:'train/accuracy' 2:0.75} 1:{1:'train/lr' 2:0.125} "
                "1:{1:'train/grad_norm' 2:2.5} "
                "1:{1:'train/samples_per_second' 2:1024}}",
                "1:1026.5 2:300 5:{1:{1:'eval/loss' 2:0.25} "
                "1:{1:'eval/accuracy' 2:0.5}}",
            }));
}

TEST_F(TensorBoardLogTest, AResumedRunSaysWhereItBegins) {
  for (std::int64_t first_step : {0, 100}) {
    auto log =
        TensorBoardLog::Open(files_, folder_, {time_, "host", 7 + first_step});
    ASSERT_TRUE(log.ok()) << log.status();
    StartEntry start;
    start.first_step = first_step;
    ASSERT_TRUE(log->OnStart(start).ok());
  }
  EXPECT_EQ(files_.List(folder_)->size(), 2u) << "a file for each run";
  EXPECT_EQ(Events("events.out.tfevents.0000001024.host.7")[1], "2:1 7:{1:1}");
  EXPECT_EQ(Events("events.out.tfevents.0000001024.host.107")[1],
            "2:101 7:{1:1}");
}

TEST_F(TensorBoardLogTest, ARegressionHasNoAccuracyAndALossMayBeNoNumber) {
  auto log = TensorBoardLog::Open(files_, folder_, {time_, "host", 7});
  ASSERT_TRUE(log.ok()) << log.status();
  EvaluationEntry evaluation;
  evaluation.step = 1;
  evaluation.loss = std::numeric_limits<double>::infinity();
  ASSERT_TRUE(log->OnEvaluation(evaluation).ok());
  EXPECT_EQ(Events("events.out.tfevents.0000001024.host.7")[1],
            "2:1 5:{1:{1:'eval/loss' 2:inf}}");
}

}  // namespace
}  // namespace troupe::tools
