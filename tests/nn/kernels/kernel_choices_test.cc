#include "nn/kernels/kernel_choices.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/kernels/choice_cache.h"
#include "tests/base/faulty_file_system.h"
#include "tests/base/fresh_path.h"

namespace troupe::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kHere[] = "NVIDIA H200, cuDNN 9.19.0";
constexpr char kThere[] = "NVIDIA H100, cuDNN 9.19.0";

class KernelChoicesTest : public testing::Test {
 protected:
  KernelChoices::Options On(base::FileSystem& files) {
    KernelChoices::Options options;
    options.files = &files;
    options.folder = folder_;
    options.warn = [this](const std::string& words) { told_.push_back(words); };
    return options;
  }
  KernelChoices::Options OnDisk() { return On(files_); }
  std::string PathOf(const std::string& context) const {
    return absl::StrCat(folder_, "/", KernelChoices::FileName(context));
  }

  base::PosixFileSystem files_;
  const std::string folder_ = base::FreshPath() + "/troupe/kernels";
  std::vector<std::string> told_;
};

TEST_F(KernelChoicesTest, TheFirstWhoMeasuresChooses) {
  KernelChoices choices;
  DeviceChoices& device = choices.For(kHere);
  EXPECT_EQ(&device, &choices.For(kHere));
  EXPECT_NE(&device, &choices.For(kThere));
  EXPECT_EQ(device.Find("conv:a"), std::nullopt);
  EXPECT_EQ(device.Agree("conv:a", "x", Origin::kMeasured), "x");
  EXPECT_EQ(device.Agree("conv:a", "y", Origin::kMeasured), "x");
  EXPECT_EQ(device.Agree("conv:a", "y", Origin::kMeasured, "x"), "y");
  // The library refused the old choice for another rank, too.
  EXPECT_EQ(device.Agree("conv:a", "z", Origin::kMeasured, "x"), "y");
  EXPECT_EQ(device.Find("conv:a"), "y");
  EXPECT_EQ(choices.InUse(), (ChoicesByDevice{{kHere, {{"conv:a", "y"}}}}));
}

TEST_F(KernelChoicesTest, AllRanksOfAProcessTakeTheSame) {
  KernelChoices choices;
  std::vector<std::string> taken(4);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    ranks.emplace_back([&, rank] {
      DeviceChoices& device = choices.For(kHere);
      for (int key = 0; key < 200; ++key) {
        absl::StrAppend(&taken[rank], device.Agree(absl::StrCat("k", key),
                                                   absl::StrCat("by", rank),
                                                   Origin::kMeasured));
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  for (const std::string& each : taken) EXPECT_EQ(each, taken[0]);
}

TEST_F(KernelChoicesTest, APlanGoesBeforeTheDisk) {
  {
    KernelChoices before(OnDisk());
    before.For(kHere).Agree("a", "disk", Origin::kMeasured);
    before.For(kHere).Agree("b", "disk", Origin::kMeasured);
  }
  KernelChoices choices(OnDisk());
  choices.Adopt({{kHere, {{"a", "plan"}, {"c", "plan"}}}});
  DeviceChoices& device = choices.For(kHere);
  EXPECT_EQ(device.Find("a"), "plan");
  EXPECT_EQ(device.Find("b"), "disk");
  EXPECT_EQ(device.Agree("d", "mine", Origin::kGuessed), "mine");
  EXPECT_EQ(choices.InUse(),
            (ChoicesByDevice{
                {kHere, {{"a", "plan"}, {"b", "disk"}, {"d", "mine"}}}}));
  EXPECT_EQ(choices.Known().at(kHere).size(), 4u);
  // Neither a plan's choices nor guesses were measured here.
  choices.Save();
  ChoiceCache file(kHere);
  ASSERT_TRUE(LoadChoices(files_, PathOf(kHere), file).ok());
  EXPECT_EQ(file.choices(),
            (std::map<std::string, std::string>{{"a", "disk"}, {"b", "disk"}}));
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(KernelChoicesTest, APlanOfAnotherDeviceIsToldInWords) {
  KernelChoices choices(OnDisk());
  choices.Adopt({{kThere, {{"a", "plan"}}}});
  EXPECT_EQ(choices.For(kHere).Find("a"), std::nullopt);
  EXPECT_THAT(told_,
              ElementsAre("the checkpoint's algorithms are for NVIDIA H100, "
                          "cuDNN 9.19.0, and this is NVIDIA H200, cuDNN "
                          "9.19.0: they are chosen anew, and may give other "
                          "last bits"));
  choices.For(kHere);
  EXPECT_EQ(told_.size(), 1u);
}

TEST_F(KernelChoicesTest, EachDeviceHasAFile) {
  EXPECT_EQ(KernelChoices::FileName(kHere).substr(0, 12), "nvidia-h200-");
  EXPECT_EQ(KernelChoices::FileName(std::string(200, '/')).substr(0, 48),
            std::string(48, '-'));
  EXPECT_NE(KernelChoices::FileName(kHere),
            KernelChoices::FileName("NVIDIA H200, cuDNN 9.20.0"));
  {
    KernelChoices choices(OnDisk());
    choices.For(kHere).Agree("a", "here", Origin::kMeasured);
    choices.For(kThere).Agree("a", "there", Origin::kMeasured);
  }
  KernelChoices choices(OnDisk());
  EXPECT_EQ(choices.For(kHere).Find("a"), "here");
  EXPECT_EQ(choices.For(kThere).Find("a"), "there");
  EXPECT_THAT(told_, IsEmpty());
}

// The texts: a file of another device under this one's name, and a damaged one.
TEST_F(KernelChoicesTest, AFileThatCannotBeUsedIsNamedAndReplaced) {
  ChoiceCache other(kThere);
  other.Put("a", "there");
  for (const std::string& text : {other.ToText(), std::string("garbage")}) {
    told_.clear();
    ASSERT_TRUE(files_.CreateFolder(folder_).ok());
    ASSERT_TRUE(base::WriteWholeFile(files_, PathOf(kHere), text).ok());
    {
      KernelChoices choices(OnDisk());
      EXPECT_EQ(choices.For(kHere).Find("a"), std::nullopt);
      choices.For(kHere);
      EXPECT_THAT(told_, ElementsAre(testing::AllOf(
                             HasSubstr(PathOf(kHere)),
                             HasSubstr("what it has is not used"))));
      choices.For(kHere).Agree("a", "mine", Origin::kMeasured);
    }
    KernelChoices again(OnDisk());
    EXPECT_EQ(again.For(kHere).Find("a"), "mine");
    EXPECT_EQ(told_.size(), 1u);
  }
}

TEST_F(KernelChoicesTest, AFolderThatCannotBeWrittenIsNoError) {
  base::FaultyFileSystem full;
  full.FailAt(0, EROFS);
  KernelChoices choices(On(full));
  EXPECT_EQ(choices.For(kHere).Agree("a", "x", Origin::kMeasured), "x");
  choices.Save();
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_THAT(told_[0], HasSubstr("later runs measure them again"));
  EXPECT_EQ(choices.For(kHere).Find("a"), "x");
  choices.Save();  // succeeds now
  ChoiceCache file(kHere);
  EXPECT_TRUE(LoadChoices(files_, PathOf(kHere), file).ok());
  EXPECT_EQ(file.size(), 1u);
  EXPECT_EQ(told_.size(), 1u);
}

TEST_F(KernelChoicesTest, WhatProcessesWriteAtTheSameTimeIsMerged) {
  constexpr int kProcesses = 4, kRounds = 5;
  std::vector<pid_t> children;
  for (int process = 0; process < kProcesses; ++process) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      KernelChoices::Options options = OnDisk();
      bool told = false;
      options.warn = [&told](const std::string&) { told = true; };
      {
        KernelChoices choices(options);
        for (int round = 0; round < kRounds; ++round) {
          choices.For(kHere).Agree(absl::StrCat("k", process, ".", round), "x",
                                   Origin::kMeasured);
          choices.Save();
        }
      }
      ::_exit(told ? 1 : 0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  ChoiceCache file(kHere);
  ASSERT_TRUE(LoadChoices(files_, PathOf(kHere), file).ok());
  EXPECT_EQ(file.size(), std::size_t{kProcesses * kRounds});
}

TEST(KernelCacheFolderTest, IsWhereTheSystemSays) {
  EXPECT_EQ(KernelCacheFolder("/var/cache/ann", "/users/ann"),
            "/var/cache/ann/troupe/kernels");
  EXPECT_EQ(KernelCacheFolder("", "/users/ann"),
            "/users/ann/.cache/troupe/kernels");
  EXPECT_EQ(KernelCacheFolder("relative", "/users/ann"),
            "/users/ann/.cache/troupe/kernels");
  EXPECT_EQ(KernelCacheFolder("", ""), "");
}

}  // namespace
}  // namespace troupe::nn
