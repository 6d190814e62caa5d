#include "data/mnist.h"

#include <array>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/faulty_file_system.h"
#include "tests/data/test_util.h"

namespace troupe::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

IdxFile File(const std::string& path, const Bytes& bytes) {
  auto file = ParseIdxFile(bytes, path);
  EXPECT_TRUE(file.ok()) << file.status();
  return *std::move(file);
}

// Two images [1, 3].
IdxFile TwoImages() {
  return File("images", MakeIdx({2, 1, 3}, {1, 2, 3, 4, 5, 6}));
}

TEST(MnistTest, JoinsImagesAndLabels) {
  const auto images = JoinMnist(TwoImages(), File("l", MakeIdx({2}, {9, 0})));
  ASSERT_TRUE(images.ok()) << images.status();
  EXPECT_EQ(images->shape, nn::Shape({1, 3, 1}));
  EXPECT_EQ(images->num_classes, 10);
  EXPECT_THAT(images->pixels, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(images->labels, ElementsAre(9, 0));
}

TEST(MnistTest, SaysWhatDoesNotFit) {
  EXPECT_EQ(JoinMnist(TwoImages(), File("labels", MakeIdx({3}, {1, 2, 3})))
                .status()
                .message(),
            "images has 2 images, labels has 3 labels; give both files of one "
            "data set");
  EXPECT_EQ(JoinMnist(TwoImages(), File("labels", MakeIdx({2}, {1, 10})))
                .status()
                .message(),
            "labels: label 10 at byte 9 is not a digit; give labels of 10 "
            "classes, 0 to 9");
  EXPECT_EQ(JoinMnist(TwoImages(), TwoImages()).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(JoinMnist(File("images", MakeIdx({2, 0, 3}, {})),
                         File("labels", MakeIdx({2}, {1, 1})))
                   .ok());
}

TEST(MnistTest, FindsPlainAndPackedFiles) {
  base::PosixFileSystem files;
  const std::string folder = MakeTempFolder();
  EXPECT_FALSE(HasMnist(files, folder, MnistPart::kTest));
  WriteFile(folder, "t10k-images-idx3-ubyte", MakeIdx({1, 2, 2}, {1, 2, 3, 4}));
  WriteFile(folder, "t10k-labels-idx1-ubyte.gz", Gzip(MakeIdx({1}, {5})));
  EXPECT_TRUE(HasMnist(files, folder, MnistPart::kTest));
  EXPECT_FALSE(HasMnist(files, folder, MnistPart::kTrain));
  const auto images = ReadMnist(files, folder, MnistPart::kTest);
  ASSERT_TRUE(images.ok()) << images.status();
  EXPECT_THAT(images->labels, ElementsAre(5));
  const absl::Status missing =
      ReadMnist(files, folder, MnistPart::kTrain).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(
      std::string(missing.message()),
      HasSubstr(folder + "/train-images-idx3-ubyte, plain or with .gz"));
}

// Writes one image of label 7 for training.
void WriteOne(const std::string& folder, const std::string& images,
              const std::string& labels) {
  base::PosixFileSystem files;
  ASSERT_TRUE(files.CreateFolder(folder).ok());
  WriteFile(folder, images, MakeIdx({1, 1, 1}, {9}));
  WriteFile(folder, labels, MakeIdx({1}, {7}));
}

TEST(MnistTest, LooksWhereTorchvisionWrites) {
  base::PosixFileSystem files;
  for (const std::string below :
       {"", "/raw", "/MNIST/raw", "/FashionMNIST/raw", "/KMNIST/raw"}) {
    const std::string folder = MakeTempFolder();
    WriteOne(folder + below, "train-images-idx3-ubyte",
             "train-labels-idx1-ubyte");
    EXPECT_TRUE(HasMnist(files, folder, MnistPart::kTrain)) << below;
    EXPECT_FALSE(HasMnist(files, folder, MnistPart::kTest)) << below;
    EXPECT_EQ(FindMnist(files, folder), folder + below);
    const auto train = ReadMnist(files, folder, MnistPart::kTrain);
    ASSERT_TRUE(train.ok()) << train.status();
    EXPECT_THAT(train->labels, ElementsAre(7));
    EXPECT_EQ(ReadMnist(files, folder, MnistPart::kTest).status().message(),
              "no " + folder + below +
                  "/t10k-images-idx3-ubyte, plain or with .gz, beside the "
                  "other files; put it there");
  }
  const std::string dotted = MakeTempFolder();
  WriteOne(dotted, "train-images.idx3-ubyte", "train-labels.idx1-ubyte");
  EXPECT_TRUE(ReadMnist(files, dotted, MnistPart::kTrain).ok());
}

// Kaggle's archive has each file twice, once in a folder of its own name.
TEST(MnistTest, ReadsFilesInFoldersOfTheirNames) {
  base::PosixFileSystem files;
  const std::string images = "train-images-idx3-ubyte";
  const std::string labels = "train-labels-idx1-ubyte";
  for (const bool has_both : {false, true}) {
    const std::string folder = MakeTempFolder();
    for (const std::string& name : {images, labels}) {
      ASSERT_TRUE(files.CreateFolder(folder + "/" + name).ok());
    }
    WriteOne(folder, images + "/" + images, labels + "/" + labels);
    if (has_both) {
      WriteOne(folder, "train-images.idx3-ubyte", "train-labels.idx1-ubyte");
    }
    EXPECT_TRUE(HasMnist(files, folder, MnistPart::kTrain));
    const auto train = ReadMnist(files, folder, MnistPart::kTrain);
    ASSERT_TRUE(train.ok()) << train.status();
    EXPECT_THAT(train->labels, ElementsAre(7));
  }
}

TEST(MnistTest, RefusesTwoDataSets) {
  base::PosixFileSystem files;
  const std::string folder = MakeTempFolder();
  for (const std::string set : {"/FashionMNIST/raw", "/MNIST/raw"}) {
    WriteOne(folder + set, "train-images-idx3-ubyte",
             "train-labels-idx1-ubyte");
  }
  EXPECT_TRUE(HasMnist(files, folder, MnistPart::kTrain));
  EXPECT_EQ(FindMnist(files, folder), folder);
  EXPECT_EQ(ReadMnist(files, folder, MnistPart::kTrain).status().message(),
            folder + " has the files of 2 data sets; give one of " + folder +
                "/MNIST/raw, " + folder + "/FashionMNIST/raw");
}

TEST(MnistTest, EveryReadMayFail) {
  const std::string folder = MakeTempFolder();
  WriteFile(folder, "t10k-images-idx3-ubyte", MakeIdx({1, 2, 2}, {1, 2, 3, 4}));
  WriteFile(folder, "t10k-labels-idx1-ubyte.gz", Gzip(MakeIdx({1}, {5})));
  base::FaultyFileSystem counted;
  ASSERT_TRUE(ReadMnist(counted, folder, MnistPart::kTest).ok());
  EXPECT_EQ(counted.reads(), 4);  // two files, opened and read
  for (int read = 0; read < counted.reads(); ++read) {
    base::FaultyFileSystem faulty;
    faulty.FailReadAt(read, EIO);
    const char* file =
        read < 2 ? "/t10k-images-idx3-ubyte" : "/t10k-labels-idx1-ubyte.gz";
    EXPECT_EQ(ReadMnist(faulty, folder, MnistPart::kTest).status().message(),
              "cannot read " + folder + file +
                  ": Input/output error; check the disk");
    EXPECT_TRUE(faulty.failed());
  }
}

TEST(MnistTest, ReadsTheRealOne) {
  const std::string folder = FindRealData("mnist");
  if (folder.empty()) {
    GTEST_SKIP() << "no MNIST here: set TROUPE_DATA to the folder above mnist";
  }
  base::PosixFileSystem files;
  const auto images = ReadMnist(files, folder, MnistPart::kTest);
  ASSERT_TRUE(images.ok()) << images.status();
  EXPECT_EQ(images->shape, nn::Shape({28, 28, 1}));
  ASSERT_EQ(images->labels.size(), 10000u);
  // The counts of the digits 0..9 in the test set, and its first labels.
  std::array<int, 10> counts{};
  for (std::uint8_t label : images->labels) ++counts[label];
  EXPECT_THAT(counts, ElementsAre(980, 1135, 1032, 1010, 982, 892, 958, 1028,
                                  974, 1009));
  EXPECT_THAT(absl::MakeSpan(images->labels).first(5),
              ElementsAre(7, 2, 1, 0, 4));
}

}  // namespace
}  // namespace troupe::data
