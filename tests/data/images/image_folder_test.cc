#include "data/images/image_folder.h"

#include "base/field_error.h"
#include "data/images/image_splits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/data/images/encode.h"

namespace troupe::data {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

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
  EXPECT_THAT(
      std::string(ListImageFolder(*Disk(), root).status().message()),
      HasSubstr("no image (.jpg, .jpeg, .png, .webp, .gif, .tif, .tiff, "
                ".bmp, .pbm, .pgm, .ppm or .pnm) in " +
                root + "/cat"));
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
  EXPECT_EQ(
      FillFrom(**dataset, {0, 2}).status.message(),
      root +
          "/dog/1.png: not a JPEG, PNG, WebP, GIF, TIFF, BMP or PNM file; "
          "convert or remove it");
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

// Writes one image for each of `paths` below a new folder, and returns that.
std::string FolderWith(const std::vector<std::string>& paths) {
  const std::string root = MakeTempFolder();
  for (const std::string& path : paths) {
    const std::size_t slash = path.rfind('/');
    Put(root + "/" + path.substr(0, slash), path.substr(slash + 1),
        EncodePng(Plain(2, 2, 0, 0, 0)));
  }
  return root;
}

std::string ErrorOf(const std::string& root) {
  const std::string message(
      OpenImages(Disk(), root, Small(), {}).status().message());
  return message.substr(message.find(root) + root.size());
}

TEST(OpenImagesTest, RefusesOtherClassesInVal) {
  EXPECT_THAT(
      ErrorOf(
          FolderWith({"train/cat/1.png", "train/dog/1.png", "test/cat/1.png"})),
      AllOf(HasSubstr("/test has other classes than "),
            HasSubstr("/train: \"dog\" is missing; give both the same")));
  EXPECT_THAT(
      ErrorOf(FolderWith({"train/cat/1.png", "train/dog/1.png",
                          "val/bird/1.png", "val/cat/1.png", "val/dog/1.png"})),
      HasSubstr(": \"bird\" is new; give"));
  EXPECT_THAT(ErrorOf(FolderWith(
                  {"train/cat/1.png", "val/Cat/1.png", "val/emu/1.png"})),
              HasSubstr(": \"Cat\" is new, \"emu\" is new, \"cat\" is "
                        "missing; give both"));
}

TEST(OpenImagesTest, KnowsPartsByAnySpelling) {
  const std::pair<std::string, std::string> spellings[] = {
      {"Train", "Val"},           {"TRAINING", "Validation"},
      {"train", "valid"},         {"training_set", "Test_Set"},
      {"train", "DEV"},           {"Train Images", "testing"},
      {"train-data", "test-data"}};
  for (const auto& [train, test] : spellings) {
    const auto splits =
        OpenImages(Disk(),
                   FolderWith({train + "/cat/1.png", train + "/cat/2.png",
                               train + "/dog/1.png", test + "/cat/1.png",
                               test + "/dog/2.png"}),
                   Small(), {});
    ASSERT_TRUE(splits.ok()) << splits.status();
    EXPECT_THAT(splits->classes, ElementsAre("cat", "dog"));
    EXPECT_EQ(splits->train->size(), 3);
    ASSERT_NE(splits->test, nullptr) << test;
    EXPECT_EQ(splits->test->size(), 2);
    EXPECT_THAT(splits->notes, IsEmpty());
  }
}

TEST(OpenImagesTest, EvaluatesValidationBeforeTest) {
  for (const std::string val : {"valid", "Val", "dev", "validation"}) {
    const auto splits =
        OpenImages(Disk(),
                   FolderWith({"train/a/1.png", "test/a/1.png", "test/a/2.png",
                               val + "/a/1.png", "unlabelled/x/1.png"}),
                   Small(), {});
    ASSERT_TRUE(splits.ok()) << splits.status();
    EXPECT_EQ(splits->test->size(), 1);
    EXPECT_THAT(splits->notes,
                ElementsAre(EndsWith(": \"train\" is trained on, \"" + val +
                                     "\" is evaluated; not read: \"test\", "
                                     "\"unlabelled\"")));
  }
}

TEST(OpenImagesTest, RefusesPartsThatAreNotClear) {
  EXPECT_EQ(ErrorOf(FolderWith({"Train/a/1.png", "train/a/1.png"})),
            " has 2 folders of images to train on, \"Train\", \"train\"; keep "
            "one or join them");
  EXPECT_EQ(
      ErrorOf(FolderWith({"train/a/1.png", "val/a/1.png", "valid/a/1.png"})),
      " has 2 folders of images to evaluate, \"val\", \"valid\"; keep one "
      "or join them");
  EXPECT_THAT(
      ErrorOf(FolderWith({"val/a/1.png", "Test/a/1.png"})),
      HasSubstr(" has \"val\", \"Test\", but no images to train on; put "
                "them into a folder \"train\""));
  EXPECT_THAT(ErrorOf(FolderWith({"train/1.png", "val/1.png"})),
              HasSubstr("/train; put the images of each class into a"));
}

TEST(OpenImagesTest, AnEvaluationReadsTheTestFolderAlone) {
  SplitOptions split;
  split.trained_on = "";
  for (const char* train : {"train/a/1.png", "val/a/2.png"}) {
    const std::string root =
        FolderWith({train, "val/a/1.png", "val/b/1.png", "val/b/2.png"});
    const auto splits = OpenImages(Disk(), root, Small(), split);
    ASSERT_TRUE(splits.ok()) << splits.status();
    EXPECT_EQ(splits->train, nullptr);
    EXPECT_EQ(splits->content, "");
    EXPECT_THAT(splits->classes, ElementsAre("a", "b"));
    EXPECT_EQ(splits->test->size(), train[0] == 't' ? 3 : 4);
  }
  // Class folders, of which a part is held back, are read as a whole.
  const auto whole =
      OpenImages(Disk(), FolderWith({"a/1.png", "a/2.png", "b/1.png"}), Small(),
                 {/*val_fraction=*/0.4, /*seed=*/0, /*trained_on=*/""});
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(whole->train->size(), 2);
  EXPECT_EQ(whole->test->size(), 1);
}

// Names that parts have, of things that are to be told apart.
TEST(OpenImagesTest, ClassesMayHaveTheNamesOfParts) {
  for (const std::vector<std::string>& paths :
       {std::vector<std::string>{"car/1.png", "train/1.png"},
        {"exam/1.png", "test/1.png"},
        {"dev/more/1.png", "ops/more/1.png"}}) {
    const auto splits = OpenImages(Disk(), FolderWith(paths), Small(), {0, 0});
    ASSERT_TRUE(splits.ok()) << splits.status();
    EXPECT_EQ(splits->classes.size(), 2u);
    EXPECT_EQ(splits->train->size(), 2);
  }
}

TEST(OpenImagesTest, CountsWhatIsNotRead) {
  const std::string root = FolderWith(
      {"cat/1.png", "cat/2.HEIC", "cat/3.heic", "cat/in/4.pcx", "dog/1.jpg",
       "dog/README", "dog/.DS_Store", "dog/ends.", "notes.d/1.png"});
  Put(root, "loose.png", {'x'});
  ASSERT_TRUE(Disk()->MakeLink("gone/readme", root + "/cat/readme.txt").ok());
  const auto splits = OpenImages(Disk(), root, Small(), {0, 0});
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->train->size(), 3);
  EXPECT_THAT(
      splits->notes,
      ElementsAre(root +
                  ": 7 files are not read: 2 .heic, 2 without an ending, "
                  "1 .pcx, 1 in no class, 1 linked to nothing; images "
                  "are the .jpg, .jpeg, .png, .webp, .gif, .tif, .tiff, "
                  ".bmp, .pbm, .pgm, .ppm and .pnm in the folders of classes"));
  EXPECT_EQ(NoteOfUnread("x", {}), "");
  EXPECT_THAT(NoteOfUnread("x", {{".txt", 1}}),
              HasSubstr("x: 1 file is not read: 1 .txt;"));
}

TEST(OpenImagesTest, LinksToNothing) {
  const std::string root = FolderWith({"cat/1.png", "dog/1.png"});
  ASSERT_TRUE(Disk()->MakeLink("gone/notes", root + "/cat/notes").ok());
  ASSERT_TRUE(Disk()->MakeLink("self", root + "/dog/self").ok());
  ASSERT_TRUE(Disk()->MakeLink("../elsewhere", root + "/bird").ok());
  auto splits = OpenImages(Disk(), root, Small(), {0, 0});
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_THAT(splits->classes, ElementsAre("cat", "dog"));
  EXPECT_THAT(splits->notes, ElementsAre(HasSubstr("3 linked to nothing")));
  // An image is missed when it is read.
  ASSERT_TRUE(Disk()->MakeLink("gone/7.png", root + "/cat/7.png").ok());
  splits = OpenImages(Disk(), root, Small(), {0, 0});
  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(FillFrom(*splits->train, {0, 1}).status.message(),
            "cannot read " + root +
                "/cat/7.png: it is a link to gone/7.png, which is not there; "
                "restore that or remove the link");
}

TEST(OpenImagesTest, ImagesLinkedToNothingAreNamed) {
  for (const std::string target :
       {"/no/such/disk/1.jpeg", "0.png", "../dog/moved.png"}) {
    const std::string root = FolderWith({"cat/1.png", "dog/1.png"});
    ASSERT_TRUE(Disk()->MakeLink(target, root + "/cat/0.png").ok());
    const auto splits = OpenImages(Disk(), root, Small(), {0, 0});
    ASSERT_TRUE(splits.ok()) << splits.status();
    EXPECT_THAT(std::string(FillFrom(*splits->train, {0}).status.message()),
                AllOf(HasSubstr("/cat/0.png: it is a link to " + target),
                      HasSubstr("; restore that or remove the link")));
  }
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
