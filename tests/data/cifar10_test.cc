#include "data/cifar10.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/faulty_file_system.h"
#include "tests/data/test_util.h"

namespace troupe::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A record whose planes are all `red`, `green`, `blue`, but for red at (0, 1)
// and blue at (31, 31), which are one more.
Bytes Record(std::uint8_t label, std::uint8_t red, std::uint8_t green,
             std::uint8_t blue) {
  Bytes bytes = {label};
  bytes.insert(bytes.end(), 1024, red);
  bytes.insert(bytes.end(), 1024, green);
  bytes.insert(bytes.end(), 1024, blue);
  ++bytes[1 + 1];
  ++bytes[3072];
  return bytes;
}

TEST(Cifar10Test, TurnsPlanesIntoPixels) {
  Bytes bytes = Record(3, 10, 20, 30);
  const Bytes second = Record(9, 40, 50, 60);
  bytes.insert(bytes.end(), second.begin(), second.end());
  ByteImages images;
  const absl::Status status = ParseCifar10(bytes, "x", images);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(images.shape, nn::Shape({32, 32, 3}));
  EXPECT_THAT(images.labels, ElementsAre(3, 9));
  ASSERT_EQ(images.pixels.size(), 2 * 3072u);
  EXPECT_THAT(absl::MakeSpan(images.pixels).subspan(0, 6),
              ElementsAre(10, 20, 30, 11, 20, 30));
  EXPECT_THAT(absl::MakeSpan(images.pixels).subspan(3072 - 3, 6),
              ElementsAre(10, 20, 31, 40, 50, 60));
}

TEST(Cifar10Test, SaysWhatIsWrong) {
  ByteImages images;
  Bytes bytes = Record(3, 10, 20, 30);
  bytes.resize(3073 + 100);
  EXPECT_EQ(ParseCifar10(bytes, "x", images).message(),
            "x: truncated at byte 3173: records have 3073 bytes, the last one "
            "begins at byte 3073; replace it by a file of CIFAR-10's binary "
            "version");
  bytes.resize(2 * 3073);
  bytes[3073] = 10;
  EXPECT_EQ(ParseCifar10(bytes, "x", images).message(),
            "x: label 10 at byte 3073 is not below 10; replace it by a file of "
            "CIFAR-10's binary version");
  EXPECT_FALSE(ParseCifar10({}, "x", images).ok());
  EXPECT_TRUE(images.labels.empty());
}

TEST(Cifar10Test, NamesOtherFormats) {
  ByteImages images;
  EXPECT_EQ(
      ParseCifar10(BytesOfText(kLfsPointer), "x", images).message(),
      "x: a pointer of git-lfs, not records of CIFAR-10's binary version; "
      "fetch the file itself (git lfs pull)");
  Bytes pickle = {0x80, 2, '}', 'q', 1, '(', 'U', 5, 'l', 'a', 'b'};
  EXPECT_EQ(ParseCifar10(pickle, "x", images).message().substr(0, 24),
            "x: a pickle of Python, n");
  pickle.resize(3073);  // the length of a record
  EXPECT_EQ(ParseCifar10(pickle, "x", images).message().substr(0, 24),
            "x: a pickle of Python, n");
}

TEST(Cifar10Test, NamesOtherVersions) {
  base::PosixFileSystem files;
  const auto error = [&](const std::string& name) {
    const std::string folder = MakeTempFolder();
    WriteFile(folder, name, {'x'});
    const std::string message(
        ReadCifar10(files, folder, Cifar10Part::kTrain).status().message());
    return message.substr(message.find(folder) + folder.size());
  };
  const std::string python =
      " has CIFAR-10's python version (cifar-10-batches-py), which is not "
      "read; unpack cifar-10-binary.tar.gz (CIFAR-10's binary version) there";
  EXPECT_EQ(error("cifar-10-batches-py"), python);
  EXPECT_EQ(error("data_batch_1"), python);
  EXPECT_EQ(error("cifar-100-python"),
            " has CIFAR-100, which is not read; unpack cifar-10-binary.tar.gz "
            "(CIFAR-10's binary version) there");
  EXPECT_EQ(error("readme"),
            "/data_batch_1.bin; unpack cifar-10-binary.tar.gz (CIFAR-10's "
            "binary version) there");
}

// Programs with windows unpack an archive into a folder of its name.
TEST(Cifar10Test, LooksWhereArchivesAreUnpacked) {
  base::PosixFileSystem files;
  for (const std::string below :
       {"/cifar-10-binary", "/cifar-10-binary/cifar-10-batches-bin",
        "/cifar-10-batches-bin"}) {
    const std::string folder = MakeTempFolder();
    ASSERT_TRUE(files.CreateFolder(folder + below).ok());
    WriteFile(folder + below, "test_batch.bin", Record(4, 1, 2, 3));
    const auto test = ReadCifar10(files, folder, Cifar10Part::kTest);
    if (below == "/cifar-10-binary") {
      EXPECT_EQ(test.status().code(), absl::StatusCode::kNotFound);
      continue;
    }
    EXPECT_TRUE(HasCifar10(files, folder, Cifar10Part::kTest)) << below;
    ASSERT_TRUE(test.ok()) << test.status();
    EXPECT_THAT(test->labels, ElementsAre(4));
  }
}

TEST(Cifar10Test, ReadsFoldersEitherWay) {
  base::FaultyFileSystem files;
  const std::string folder = MakeTempFolder();
  for (int i = 1; i <= 5; ++i) {
    WriteFile(folder, "data_batch_" + std::to_string(i) + ".bin",
              Record(static_cast<std::uint8_t>(i), 1, 2, 3));
  }
  const auto train = ReadCifar10(files, folder, Cifar10Part::kTrain);
  ASSERT_TRUE(train.ok()) << train.status();
  EXPECT_THAT(train->labels, ElementsAre(1, 2, 3, 4, 5));
  const absl::Status missing =
      ReadCifar10(files, folder, Cifar10Part::kTest).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()),
              HasSubstr(folder + "/test_batch.bin"));
  files.FailReadAt(files.reads() + 3, EIO);
  EXPECT_EQ(ReadCifar10(files, folder, Cifar10Part::kTrain).status().message(),
            "cannot read " + folder +
                "/data_batch_2.bin: Input/output error; check the disk");
}

}  // namespace
}  // namespace troupe::data
