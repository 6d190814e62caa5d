#include "data/registry.h"

#include "base/field_error.h"
#include "data/description/describe_data.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/data/test_util.h"

namespace troupe::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

DatasetOptions Kind(const std::string& kind, std::int64_t train_count = 0,
                    std::int64_t test_count = 0) {
  DatasetOptions options;
  options.kind = kind;
  options.train_count = train_count;
  options.test_count = test_count;
  return options;
}

// A folder with `count` images 1x1 in the files of `prefix`; image i has the
// pixel and label i % 10.
std::string WriteMnist(const std::string& folder, const std::string& prefix,
                       std::uint32_t count) {
  Bytes digits(count);
  for (std::uint32_t i = 0; i < count; ++i) digits[i] = i % 10;
  WriteFile(folder, prefix + "-images-idx3-ubyte",
            MakeIdx({count, 1, 1}, digits));
  WriteFile(folder, prefix + "-labels-idx1-ubyte", MakeIdx({count}, digits));
  return folder;
}

TEST(RegistryTest, NamesTheKinds) {
  EXPECT_THAT(DatasetKinds(),
              ElementsAre("glyphs", "mnist", "cifar10", "synthetic", "text",
                          "tokens", "images"));
  EXPECT_EQ(OpenDataset(Kind("imagenet")).status().message(),
            "DatasetOptions.kind = \"imagenet\": must be one of \"glyphs\", "
            "\"mnist\", \"cifar10\", \"synthetic\", \"text\", \"tokens\", "
            "\"images\"");
}

TEST(RegistryTest, OpensGlyphs) {
  const auto splits = OpenDataset(Kind("glyphs", 30, 20));
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->train->size(), 30);
  EXPECT_EQ(splits->test->size(), 20);
  EXPECT_EQ(splits->test->spec().ToString(), "f32[28, 28, 1] -> class of 10");
}

TEST(RegistryTest, OpensSynthetic) {
  DatasetOptions options = Kind("synthetic");
  options.input_shape = {3};
  options.num_classes = 0;
  options.target_dim = 2;
  const auto splits = OpenDataset(options);
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->train->size(), 1024);
  EXPECT_EQ(splits->test->size(), 256);
  EXPECT_EQ(splits->train->spec(), RegressionSpec({3}, 2));
}

TEST(RegistryTest, SplitsTheTestFilesOfMnistWhenTheyAreAlone) {
  DatasetOptions options = Kind("mnist");
  options.path = WriteMnist(MakeTempFolder(), "t10k", 20);
  options.normalize = false;
  const auto splits = OpenDataset(options);
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->train->size(), 16);
  EXPECT_EQ(splits->test->size(), 4);
  const Filled first = FillFrom(*splits->test, {0});
  EXPECT_THAT(ToVector<std::int64_t>(first.targets), ElementsAre(6));
  EXPECT_THAT(ToVector<float>(first.inputs), ElementsAre(6.0f / 255.0f));
}

TEST(RegistryTest, UsesBothPartsOfMnist) {
  DatasetOptions options = Kind("mnist", 12, 7);
  options.path = WriteMnist(MakeTempFolder(), "t10k", 20);
  WriteMnist(options.path, "train", 50);
  const auto splits = OpenDataset(options);
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->train->size(), 12);
  EXPECT_EQ(splits->test->size(), 7);
  const Filled first = FillFrom(*splits->test, {0});
  EXPECT_THAT(ToVector<float>(first.inputs),
              ElementsAre((0.0f - 0.1307f) / 0.3081f));
  options.train_count = 51;
  EXPECT_EQ(OpenDataset(options).status().message(),
            "DatasetOptions.train_count = 51 is more than the 50 samples that "
            "the files have for it; lower it, or set 0 for all");
}

TEST(RegistryTest, SaysWhichFolderBelowIsRead) {
  base::PosixFileSystem files;
  for (const std::string below : {"/MNIST/raw", "/FashionMNIST/raw"}) {
    DatasetOptions options = Kind("mnist");
    options.path = MakeTempFolder();
    ASSERT_TRUE(files.CreateFolder(options.path + below).ok());
    WriteMnist(options.path + below, "train", 10);
    auto splits = OpenDataset(options);
    ASSERT_TRUE(splits.ok()) << splits.status();
    EXPECT_THAT(splits->notes,
                ElementsAre("MNIST is read from " + options.path + below));
    options.path += below;
    splits = OpenDataset(options);
    ASSERT_TRUE(splits.ok()) << splits.status();
    EXPECT_TRUE(splits->notes.empty());
  }
}

TEST(RegistryTest, AnEvaluationNeedsNoTrainingFiles) {
  DatasetOptions options = Kind("mnist");
  options.path = WriteMnist(MakeTempFolder(), "t10k", 20);
  const std::string alone = OpenDataset(options)->content;
  const auto tested = [&options](const std::string& trained_on) {
    options.part.trained_on = trained_on;
    const auto splits = OpenDataset(options);
    EXPECT_TRUE(splits.ok()) << splits.status();
    EXPECT_EQ(splits->train, nullptr);
    EXPECT_EQ(splits->weights, nullptr);
    return splits->test == nullptr ? 0 : splits->test->size();
  };
  EXPECT_EQ(tested("files that are gone"), 20);
  EXPECT_EQ(tested(alone), 4) << "the model has seen the others";
  EXPECT_EQ(tested(""), 4);
  options.path = WriteMnist(MakeTempFolder(), "train", 20);
  EXPECT_EQ(tested(""), 0);

  options = Kind("cifar10");
  options.path = MakeTempFolder();
  WriteFile(options.path, "test_batch.bin", Bytes(3073, 5));
  EXPECT_EQ(tested(""), 1);
  options = Kind("glyphs", 5, 10);
  options.part.sample_weights = "/nowhere";
  EXPECT_EQ(tested(""), 10);
  options = Kind("synthetic", 5, 6);
  EXPECT_EQ(tested(""), 6);
}

TEST(RegistryTest, AShareToEvaluateNeedsTheTrainingFiles) {
  DatasetOptions options = Kind("mnist");
  options.part.validation_share = 0.25;
  options.part.trained_on = "";
  options.path = WriteMnist(MakeTempFolder(), "train", 20);
  auto splits = OpenDataset(options);
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->train, nullptr);
  EXPECT_EQ(splits->test->size(), 5);
  options.path = MakeTempFolder();
  splits = OpenDataset(options);
  EXPECT_EQ(splits.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(splits.status().message()),
              HasSubstr(" (TrainingPartOptions.validation_share cuts the test "
                        "samples from the training samples)"));
}

TEST(RegistryTest, FilesWithoutATestPartGiveTrainingSamplesAlone) {
  DatasetOptions options = Kind("mnist");
  options.path = WriteMnist(MakeTempFolder(), "train", 50);
  auto splits = OpenDataset(options);
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->train->size(), 50);
  EXPECT_EQ(splits->test, nullptr);
  options.test_count = 5;
  EXPECT_EQ(OpenDataset(options).status().message(),
            "DatasetOptions.test_count = 5 is more than the 0 samples that the "
            "files have for it; lower it, or set 0 for all");
  // Half a test part is a mistake.
  WriteFile(options.path, "t10k-images-idx3-ubyte", MakeIdx({1, 1, 1}, {0}));
  EXPECT_EQ(OpenDataset(options).status().code(), absl::StatusCode::kNotFound);

  options = Kind("cifar10");
  options.path = MakeTempFolder();
  for (const char* name : {"data_batch_1.bin", "data_batch_2.bin",
                           "data_batch_3.bin", "data_batch_4.bin"}) {
    WriteFile(options.path, name, Bytes(3073, 5));
  }
  EXPECT_EQ(OpenDataset(options).status().code(), absl::StatusCode::kNotFound);
  WriteFile(options.path, "data_batch_5.bin", Bytes(3073, 5));
  splits = OpenDataset(options);
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->train->size(), 5);
  EXPECT_EQ(splits->test, nullptr);
}

TEST(RegistryTest, OpensCifar10) {
  DatasetOptions options = Kind("cifar10");
  options.path = MakeTempFolder();
  const Bytes record(3073, 5);
  for (const char* name :
       {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
        "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"}) {
    WriteFile(options.path, name, record);
  }
  options.augment = true;
  const auto splits = OpenDataset(options);
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->train->size(), 5);
  EXPECT_EQ(splits->test->size(), 1);
  // Sooner or later a shift brings in black from outside.
  bool shifted = false;
  for (std::int64_t epoch = 0; epoch < 20; ++epoch) {
    const auto first = FillFrom(*splits->train, {0}, epoch).inputs;
    shifted |= first.data<float>()[0] == (0.0f - 0.4914f) / 0.2470f;
  }
  EXPECT_TRUE(shifted);
}

TEST(RegistryTest, SaysWhatIsMissing) {
  EXPECT_EQ(OpenDataset(Kind("mnist")).status().message(),
            "DatasetOptions.kind = \"mnist\" needs DatasetOptions.path; set "
            "it to the folder of its files");
  DatasetOptions options = Kind("mnist");
  options.path = MakeTempFolder();
  const absl::Status status = OpenDataset(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("t10k-images-idx3-ubyte, plain or with .gz, here or in "
                        "MNIST/raw; give the folder of MNIST's IDX files"));
  EXPECT_FALSE(OpenDataset(Kind("glyphs", -1)).ok());
}

TEST(RegistryTest, RefusesSplitsThatDoNotGoTogether) {
  DatasetOptions options = Kind("mnist");
  options.path = WriteMnist(MakeTempFolder(), "t10k", 1);
  EXPECT_EQ(OpenDataset(options).status().message(),
            "dataset \"mnist\" has no training samples here; check the path");
  const Bytes digits(4);
  WriteFile(options.path, "train-images-idx3-ubyte",
            MakeIdx({2, 2, 1}, digits));
  WriteFile(options.path, "train-labels-idx1-ubyte", MakeIdx({2}, Bytes(2)));
  EXPECT_EQ(OpenDataset(options).status().message(),
            "dataset \"mnist\" has training samples f32[2, 1, 1] -> class of "
            "10 and test samples f32[1, 1, 1] -> class of 10 here; give files "
            "of one data set");
}

TEST(RegistryTest, DescribesWhatASampleDependsOn) {
  using Data = std::map<std::string, std::string>;
  DatasetOptions options = Kind("glyphs");
  options.seed = 7;
  EXPECT_EQ(DescribeData(options),
            (Data{{"kind", "glyphs"}, {"normalize", "true"}, {"seed", "7"}}));
  options.kind = "synthetic";
  EXPECT_EQ(DescribeData(options),
            (Data{{"kind", "synthetic"}, {"seed", "7"}}));
  options = Kind("mnist");
  options.path = "anywhere";
  options.normalize = false;
  EXPECT_EQ(DescribeData(options),
            (Data{{"kind", "mnist"}, {"normalize", "false"}}));
}

TEST(RegistryTest, NamesTheNumberOfSamplesThatIsWrong) {
  const absl::Status glyphs = OpenDataset(Kind("glyphs", 10, 1 << 30)).status();
  EXPECT_EQ(glyphs.message(),
            "DatasetOptions.test_count: glyphs come in sets of 1 to 16777216 "
            "samples, not 1073741824; choose a number between");
  EXPECT_THAT(base::FieldsOf(glyphs), ElementsAre("DatasetOptions.test_count"));
  const absl::Status synthetic =
      OpenDataset(Kind("synthetic", INT64_C(1) << 40)).status();
  EXPECT_THAT(std::string(synthetic.message()),
              HasSubstr("DatasetOptions.train_count: synthetic data of"));
  EXPECT_THAT(
      base::FieldsOf(synthetic),
      ElementsAre("DatasetOptions.train_count", "DatasetOptions.input_shape",
                  "DatasetOptions.num_classes", "DatasetOptions.target_dim"));
}

TEST(RegistryTest, BlamesThePathForWhatFilesDo) {
  DatasetOptions options = Kind("cifar10");
  options.path = MakeTempFolder();
  const absl::Status status = OpenDataset(options).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(base::FieldsOf(status), ElementsAre("DatasetOptions.path"));
  options.train_count = -1;
  EXPECT_EQ(OpenDataset(options).status().message(),
            "DatasetOptions.train_count = -1: must be at least 0, which means "
            "all");
}

TEST(RegistryTest, OpensTheRealMnist) {
  DatasetOptions options = Kind("mnist");
  options.path = FindRealData("mnist");
  if (options.path.empty()) {
    GTEST_SKIP() << "no MNIST here: set TROUPE_DATA to the folder above mnist";
  }
  const auto splits = OpenDataset(options);
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_GE(splits->train->size(), 8000);
  EXPECT_GE(splits->test->size(), 2000);
}

TEST(RegistryTest, OpensTextWithoutAFile) {
  DatasetOptions options = Kind("text", 5, 2);
  options.text.context = 32;
  const auto splits = OpenDataset(options);
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->train->size(), 5);
  EXPECT_EQ(splits->test->size(), 2);
  EXPECT_EQ(splits->train->spec(), *KnownSampleSpec(options));
  EXPECT_EQ(splits->tokenizer->name(), "bytes");
  options.text.tokenizer = "chars";
  EXPECT_FALSE(KnownSampleSpec(options).has_value());
  EXPECT_EQ(DescribeData(options),
            (std::map<std::string, std::string>{
                {"context", "32"}, {"kind", "text"}, {"tokenizer", "chars"}}));
}

TEST(RegistryTest, OpensTokens) {
  DatasetOptions options = Kind("tokens");
  options.path = WriteFile(MakeTempFolder(), "t.bin", Bytes(60, 0));
  options.text.context = 4;
  const auto splits = OpenDataset(options);
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->train->size(), 6);  // windows in 27 tokens
  EXPECT_EQ(splits->train->spec(), *KnownSampleSpec(options));
}

TEST(RegistryTest, ErrorsOfTextAndImagesBlameFields) {
  const auto field = [](const DatasetOptions& options) {
    const auto fields = base::FieldsOf(OpenDataset(options).status());
    return fields.empty() ? "" : fields.front();
  };
  DatasetOptions text = Kind("text");
  text.val_fraction = 1;
  EXPECT_EQ(field(text), "DatasetOptions.val_fraction");
  text.val_fraction = 0.1;
  text.text.tokenizer = "gpt2";
  EXPECT_EQ(field(text), "TextOptions.tokenizer");
  DatasetOptions images = Kind("images");
  EXPECT_EQ(field(images), "DatasetOptions.kind");
  images.path = "/nowhere";
  EXPECT_EQ(field(images), "DatasetOptions.path");
  images.images.resize = 10;
  EXPECT_EQ(field(images), "ImageOptions.resize");
}

TEST(RegistryTest, DescribesWhatFilesHave) {
  const auto described = [](const DatasetOptions& options) {
    const auto splits = OpenDataset(options);
    EXPECT_TRUE(splits.ok()) << splits.status();
    return DescribeData(options, *splits);
  };
  DatasetOptions text = Kind("text");
  text.text.context = 4;
  text.text.tokenizer = "chars";
  const std::string folder = MakeTempFolder();
  text.path = WriteFile(folder, "a.txt", Bytes(60, 'a'));
  const auto first = described(text);
  EXPECT_EQ(first.size(), 5u);
  // The same text under another name; another text of as many characters.
  text.path = WriteFile(folder, "moved.txt", Bytes(60, 'a'));
  EXPECT_EQ(described(text), first);
  text.path = WriteFile(folder, "b.txt", Bytes(60, 'b'));
  const auto other = described(text);
  EXPECT_NE(other.at("content"), first.at("content"));
  EXPECT_NE(other.at("vocabulary"), first.at("vocabulary"));
  text.text.tokenizer = "bytes";
  EXPECT_NE(described(text).at("vocabulary"), other.at("vocabulary"));

  DatasetOptions tokens = Kind("tokens");
  tokens.text.context = 4;
  Bytes numbers(60'000, 1);
  tokens.path = WriteFile(folder, "t.bin", numbers);
  const std::string content = described(tokens).at("content");
  numbers.back() = 2;
  tokens.path = WriteFile(folder, "u.bin", numbers);
  EXPECT_NE(described(tokens).at("content"), content);
  EXPECT_EQ(described(tokens).count("vocabulary"), 0u);

  DatasetOptions mnist = Kind("mnist");
  mnist.path = WriteMnist(MakeTempFolder(), "train", 50);
  const std::string digits = described(mnist).at("content");
  WriteFile(mnist.path, "train-labels-idx1-ubyte", MakeIdx({50}, Bytes(50, 3)));
  EXPECT_NE(described(mnist).at("content"), digits);

  EXPECT_EQ(described(Kind("glyphs", 10, 10)).count("content"), 0u)
      << "the seed says it";
}

}  // namespace
}  // namespace troupe::data
