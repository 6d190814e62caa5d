#include "data/images/image_folder.h"

#include "base/field_error.h"
#include "data/images/image_splits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/data/images/encode.h"

namespace troupe::data {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

void Put(const std::string& folder, const std::string& name,
         const Bytes& bytes) {
  base::PosixFileSystem files;
  ASSERT_TRUE(files.CreateFolder(folder).ok());
  WriteFile(folder, name, bytes);
}

// Classes cat (2 images), dog (1): plain colours, so that crops show them.
std::string SmallFolder() {
  const std::string root = MakeTempFolder();
  Put(root + "/dog", "1.png", EncodePng(Plain(12, 10, 0, 0, 255)));
  Put(root + "/cat/more", "a.JPEG", EncodeJpeg(Plain(9, 9, 255, 0, 0), 100));
  Put(root + "/cat", "z.png", EncodePng(Plain(20, 8, 0, 255, 0)));
  Put(root + "/cat", "notes.txt", {'x'});
  Put(root + "/cat", ".hidden.png", {'x'});
  Put(root, "readme.txt", {'x'});
  Put(root + "/.git", "x", {'x'});
  return root;
}

std::shared_ptr<base::FileSystem> Disk() {
  return std::make_shared<base::PosixFileSystem>();
}

TEST(ListImageFolderTest, SortsClassesAndPaths) {
  const auto images = ListImageFolder(*Disk(), SmallFolder());
  ASSERT_TRUE(images.ok()) << images.status();
  EXPECT_THAT(images->classes, ElementsAre("cat", "dog"));
  EXPECT_THAT(images->labels, ElementsAre(0, 0, 1));
  EXPECT_THAT(images->paths,
              ElementsAre(EndsWith("/cat/more/a.JPEG"), EndsWith("/cat/z.png"),
                          EndsWith("/dog/1.png")));
}

TEST(ListImageFolderTest, SaysWhatIsMissing) {
  const std::string root = MakeTempFolder();
  EXPECT_THAT(std::string(ListImageFolder(*Disk(), root).status().message()),
              HasSubstr("no folder in " + root));
  Put(root + "/cat", "notes.txt", {'x'});
  EXPECT_THAT(std::string(ListImageFolder(*Disk(), root).status().message()),
              HasSubstr("no image (.jpg, .jpeg or .png) in " + root + "/cat"));
  EXPECT_EQ(ListImageFolder(*Disk(), root + "/none").status().code(),
            absl::StatusCode::kNotFound);
}

TEST(ListImageFolderTest, LooksOnlySoDeep) {
  const std::string root = MakeTempFolder();
  std::string folder = root + "/cat";
  for (int i = 0; i < kImageFolderDepthMax + 1; ++i) folder += "/in";
  Put(folder, "1.png", {'x'});
  EXPECT_EQ(ListImageFolder(*Disk(), root).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(ImageFolderDatasetTest, DecodesAndCrops) {
  const auto images = ListImageFolder(*Disk(), SmallFolder());
  const auto dataset = MakeImageFolderDataset(
      Disk(), *images, ResizedCenterCrop(6, 4), {ToFloat()});
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->spec().ToString(), "f32[4, 4, 3] -> class of 2");
  const Filled batch = FillFrom(**dataset, {2, 1});
  ASSERT_TRUE(batch.status.ok()) << batch.status;
  EXPECT_THAT(ToVector<std::int64_t>(batch.targets), ElementsAre(1, 0));
  const auto values = ToVector<float>(batch.inputs);
  EXPECT_NEAR(values[2], 1, 1e-5);   // the dog is blue
  EXPECT_NEAR(values[48], 0, 1e-5);  // the second cat is green
  EXPECT_NEAR(values[49], 1, 1e-5);
}

TEST(ImageFolderDatasetTest, ErrorsNameTheFile) {
  const std::string root = SmallFolder();
  const auto images = ListImageFolder(*Disk(), root);
  const auto dataset = MakeImageFolderDataset(
      Disk(), *images, ResizedCenterCrop(6, 4), {ToFloat()});
  WriteFile(root + "/dog", "1.png", {'G', 'I', 'F'});
  EXPECT_EQ(FillFrom(**dataset, {0, 2}).status.message(),
            root +
                "/dog/1.png: neither a JPEG nor a PNG file; convert or "
                "remove it");
  ASSERT_TRUE(Disk()->RemoveAll(root + "/dog/1.png").ok());
  EXPECT_EQ(FillFrom(**dataset, {2}).status.code(),
            absl::StatusCode::kNotFound);
}

TEST(ImageFolderDatasetTest, ChecksWhatItIsMadeOf) {
  const CropPtr crop = ResizedCenterCrop(6, 4);
  EXPECT_FALSE(MakeImageFolderDataset(Disk(), {}, crop, {}).ok());
  EXPECT_FALSE(
      MakeImageFolderDataset(Disk(), {{"a"}, {1}, {"cat"}}, crop, {}).ok());
  EXPECT_FALSE(MakeImageFolderDataset(Disk(), {{"a"}, {0}, {"cat"}}, crop,
                                      {Normalize({0}, {1})})
                   .ok());
}

ImageOptions Small() {
  ImageOptions options;
  options.size = 4;
  options.resize = 6;
  return options;
}

TEST(OpenImagesTest, UsesTheFoldersTrainAndVal) {
  const std::string root = MakeTempFolder();
  ASSERT_TRUE(Disk()->Rename(SmallFolder(), root + "/train").ok());
  ASSERT_TRUE(Disk()->Rename(SmallFolder(), root + "/val").ok());
  ImageOptions options = Small();
  options.augment = true;
  options.color_jitter = 0.4;
  options.hue_jitter = 0.1;
  const auto splits = OpenImages(Disk(), root, options, {});
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_THAT(splits->classes, ElementsAre("cat", "dog"));
  EXPECT_EQ(splits->train->size(), 3);
  EXPECT_EQ(splits->test->size(), 3);
  const auto drawn = [&](const DatasetPtr& part, std::int64_t epoch) {
    return ToVector<float>(FillFrom(*part, {0, 1, 2}, epoch).inputs);
  };
  EXPECT_EQ(drawn(splits->train, 1), drawn(splits->train, 1));
  EXPECT_NE(drawn(splits->train, 1), drawn(splits->train, 2));
  EXPECT_EQ(drawn(splits->test, 1), drawn(splits->test, 2));
  // Pure blue, normalised.
  EXPECT_NEAR(drawn(splits->test, 0)[2 * 48 + 2], (1 - 0.406) / 0.225, 1e-4);
}

TEST(OpenImagesTest, RefusesOtherClassesInVal) {
  const std::string root = MakeTempFolder();
  ASSERT_TRUE(Disk()->Rename(SmallFolder(), root + "/train").ok());
  Put(root + "/test/cat", "1.png", EncodePng(Plain(2, 2, 0, 0, 0)));
  EXPECT_THAT(
      std::string(OpenImages(Disk(), root, Small(), {}).status().message()),
      HasSubstr("/test has other classes than the folder \"train\" beside it: "
                "\"dog\" is missing"));
  Put(root + "/test/dog", "1.png", EncodePng(Plain(2, 2, 0, 0, 0)));
  Put(root + "/test/emu", "1.png", EncodePng(Plain(2, 2, 0, 0, 0)));
  EXPECT_THAT(
      std::string(OpenImages(Disk(), root, Small(), {}).status().message()),
      HasSubstr("\"emu\" is new"));
}

TEST(OpenImagesTest, HoldsBackARandomPart) {
  const std::string root = MakeTempFolder();
  for (int i = 0; i < 20; ++i) {
    Put(root + (i % 2 == 0 ? "/a" : "/b"), std::to_string(i) + ".png",
        EncodePng(Plain(6, 6, static_cast<std::uint8_t>(i), 0, 0)));
  }
  ImageOptions options = Small();
  options.normalize = false;
  const auto reds = [&](double fraction, std::uint64_t seed, bool test) {
    const auto splits = OpenImages(Disk(), root, options, {fraction, seed});
    EXPECT_TRUE(splits.ok()) << splits.status();
    std::vector<int> all;
    const DatasetPtr part = test ? splits->test : splits->train;
    for (std::int64_t i = 0; part != nullptr && i < part->size(); ++i) {
      const Filled one = FillFrom(*part, {i});
      all.push_back(
          static_cast<int>(one.inputs.data<float>()[0] * 255.0f + 0.5f));
    }
    return all;
  };
  const std::vector<int> test = reds(0.25, 1, true);
  const std::vector<int> train = reds(0.25, 1, false);
  EXPECT_EQ(test.size(), 5u);
  EXPECT_EQ(train.size(), 15u);
  std::vector<int> all = test;
  all.insert(all.end(), train.begin(), train.end());
  std::sort(all.begin(), all.end());
  for (int i = 0; i < 20; ++i) EXPECT_EQ(all[i], i);
  EXPECT_NE(reds(0.25, 2, true), test);
  EXPECT_TRUE(reds(0, 1, true).empty());
}

TEST(OpenImagesTest, OptionsAreChecked) {
  const auto field = [](const ImageOptions& options) {
    const auto fields = base::FieldsOf(options.Validate());
    return fields.empty() ? "" : fields.front();
  };
  ImageOptions options = Small();
  EXPECT_EQ(field(options), "");
  options.resize = 3;
  EXPECT_EQ(field(options), "ImageOptions.resize");
  options.size = 0;
  EXPECT_EQ(field(options), "ImageOptions.size");
  options = Small();
  options.hue_jitter = 0.7;
  EXPECT_EQ(options.Validate().message(),
            "ImageOptions.hue_jitter = 0.7: must be 0 to 0.5");
  options.hue_jitter = 0;
  options.crop_area_min = 0;
  EXPECT_EQ(field(options), "ImageOptions.crop_area_min");
}

}  // namespace
}  // namespace troupe::data
