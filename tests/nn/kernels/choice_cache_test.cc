#include "nn/kernels/choice_cache.h"

#include <errno.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/fnv_hash.h"
#include "gtest/gtest.h"
#include "tests/base/faulty_file_system.h"
#include "tests/base/seeds.h"

namespace troupe::nn {
namespace {

constexpr char kContext[] = "NVIDIA H200, cuBLASLt 13.0.2, cuDNN 9.19.0";

ChoiceCache Made() {
  ChoiceCache choices(kContext);
  choices.Put("matmul:b", "lt.02");
  choices.Put("conv:a", "plain:12:2=64");
  return choices;
}

// Returns `lines` with the count and hash that they must have.
std::string Signed(absl::string_view lines, std::size_t entries) {
  base::FnvHash hash;
  hash.AddBytes(lines.data(), lines.size());
  return absl::StrCat(lines, "end ", entries, " ",
                      absl::Hex(hash.value(), absl::kZeroPad16), "\n");
}

TEST(ChoiceCache, FindsWhatWasPut) {
  ChoiceCache choices(kContext);
  EXPECT_EQ(choices.Find("a"), nullptr);
  EXPECT_FALSE(choices.changed());
  choices.Put("a", "1");
  choices.Put("b", "2");
  EXPECT_TRUE(choices.changed());
  EXPECT_EQ(*choices.Find("a"), "1");
  EXPECT_EQ(*choices.Find("b"), "2");
  choices.set_saved();
  choices.Put("a", "1");
  EXPECT_FALSE(choices.changed());
  choices.Put("a", "3");
  EXPECT_TRUE(choices.changed());
  EXPECT_EQ(*choices.Find("a"), "3");
  EXPECT_EQ(choices.size(), 2u);
}

TEST(ChoiceCache, ItsTextIsSortedAndSigned) {
  EXPECT_EQ(Made().ToText(),
            Signed(absl::StrCat("troupe choices 1\nof ", kContext,
                                "\nconv:a plain:12:2=64\n"
                                "matmul:b lt.02\n"),
                   2));
  EXPECT_EQ(ChoiceCache("x").ToText(), Signed("troupe choices 1\nof x\n", 0));
}

TEST(ChoiceCache, TextIsReadBackAndWhatIsThereStays) {
  ChoiceCache read(kContext);
  read.Put("matmul:b", "mine");
  read.set_saved();
  ASSERT_TRUE(read.AddText(Made().ToText()).ok());
  EXPECT_EQ(*read.Find("conv:a"), "plain:12:2=64");
  EXPECT_EQ(*read.Find("matmul:b"), "mine");
  EXPECT_FALSE(read.changed());
  ChoiceCache none("x");
  EXPECT_TRUE(none.AddText(none.ToText()).ok());
}

TEST(ChoiceCache, AnotherDeviceOrLibraryIsNamed) {
  ChoiceCache other("NVIDIA H100, cuBLASLt 13.0.2, cuDNN 9.19.0");
  const absl::Status status = other.AddText(Made().ToText());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find(kContext), absl::string_view::npos);
  EXPECT_NE(status.message().find("H100"), absl::string_view::npos);
  EXPECT_EQ(other.size(), 0u);
}

TEST(ChoiceCache, SignedNonsenseIsRefusedWithItsLine) {
  const std::string head =
      absl::StrCat("troupe choices 1\nof ", kContext, "\n");
  const struct {
    std::string text;
    const char* word;
  } wrongs[] = {
      {"", "line 1 "},
      {"troupe choices 2\n", "line 1 "},
      {"troupe choices 1", "too early"},
      {"troupe choices 1\n", "too early"},
      {head, "too early"},
      {Signed(head, 1), "count and hash"},
      {Signed(head, 0) + "\n", "count and hash"},
      {Signed("troupe choices 1\nfor x\n", 0), "line 2 "},
      {Signed(head + "a\n", 1), "line 3 "},
      {Signed(head + "a \n", 1), "line 3 "},
      {Signed(head + " a\n", 1), "line 3 "},
      {Signed(head + "a b c\n", 1), "line 3 "},
      {Signed(head + "a b\r\n", 1), "line 3 "},
      {Signed(head + "a b\nb \xc3\xa4\n", 2), "line 4 "},
      {Signed(head + "\n", 1), "line 3 "},
      {Signed(head + "a b\na c\n", 2), "line 4 "},
      {Signed(head + "b b\na c\n", 2), "line 4 "},
      {Signed(head + std::string(ChoiceCache::kKeyBytesMax + 1, 'k') + " c\n",
              1),
       "line 3 "},
      {Signed(head + "k " + std::string(ChoiceCache::kChoiceBytesMax + 1, 'c') +
                  "\n",
              1),
       "line 3 "},
      {Signed(head, 0) + std::string(ChoiceCache::kTextBytesMax, ' '),
       "more than"},
  };
  for (const auto& wrong : wrongs) {
    ChoiceCache choices(kContext);
    const absl::Status status = choices.AddText(wrong.text);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument)
        << wrong.text.substr(0, 100);
    EXPECT_NE(status.message().find(wrong.word), absl::string_view::npos)
        << status << " for " << wrong.text.substr(0, 100);
    EXPECT_EQ(choices.size(), 0u);
  }
}

TEST(ChoiceCache, HasSoManyEntriesAndNoMore) {
  ChoiceCache choices(kContext);
  for (std::size_t i = 0; i <= ChoiceCache::kEntriesMax; ++i) {
    choices.Put(absl::StrCat("k", i), "c");
  }
  EXPECT_EQ(choices.size(), ChoiceCache::kEntriesMax);
  choices.Put("k0", "other");  // exists already
  EXPECT_EQ(*choices.Find("k0"), "other");
  ChoiceCache read(kContext);
  EXPECT_TRUE(read.AddText(choices.ToText()).ok());
  EXPECT_EQ(read.size(), ChoiceCache::kEntriesMax);
  // A text with one entry more is refused.
  std::string lines = absl::StrCat("troupe choices 1\nof ", kContext, "\n");
  for (std::size_t i = 0; i <= ChoiceCache::kEntriesMax; ++i) {
    absl::StrAppend(&lines, "k", 100000 + i, " c\n");
  }
  EXPECT_FALSE(read.AddText(Signed(lines, ChoiceCache::kEntriesMax + 1)).ok());
}

// Damages a good text in seeded ways. Without a new hash, it is refused unless
// it is unchanged; with one, so that the parser continues, it is refused or
// read into entries that print as the same text.
TEST(ChoiceCache, DamagedTextIsRefusedOrMeansWhatItSays) {
  const std::string good = Made().ToText();
  const std::string lines = good.substr(0, good.find("end "));
  int accepted = 0;
  for (std::uint64_t seed : Seeds(20000)) {
    std::uint64_t state = seed * 2 + 1;
    const auto draw = [&](std::size_t below) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      return static_cast<std::size_t>((state >> 33) % below);
    };
    std::string text = lines;
    for (std::size_t i = 0, n = 1 + draw(3); i < n; ++i) {
      const std::size_t at = draw(text.size());
      const char piece[] = {' ', '\n', ':', 'a', 'z', '\0', '\x7f', '='};
      switch (draw(4)) {
        case 0:
          text[at] = piece[draw(sizeof(piece))];
          break;
        case 1:
          text.insert(at, 1, piece[draw(sizeof(piece))]);
          break;
        case 2:
          text.erase(at, 1 + draw(4));
          break;
        default:
          text.insert(at, text.substr(draw(text.size()), 1 + draw(30)));
          break;
      }
      if (text.empty()) text = "t";
    }
    ChoiceCache choices(kContext);
    if (text != lines) {
      EXPECT_FALSE(choices.AddText(text + good.substr(lines.size())).ok())
          << ReplayCommand(seed);
    }
    for (std::size_t entries = 0; entries < 5; ++entries) {
      const std::string forged = Signed(text, entries);
      if (!choices.AddText(forged).ok()) continue;
      ++accepted;
      EXPECT_EQ(choices.ToText(), forged) << ReplayCommand(seed);
    }
  }
  // The deeper checks were reached, and passed by some.
  if (Seeds(20000).size() > 1000) {
    EXPECT_GT(accepted, 10);
  }
}

class ChoiceFile : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string root = absl::StrCat(
        ::testing::TempDir(), "/",
        ::testing::UnitTest::GetInstance()->current_test_info()->name());
    ASSERT_TRUE(files_.RemoveAll(root).ok());
    ASSERT_TRUE(files_.CreateFolder(root).ok());
    path_ = root + "/choices.txt";
  }

  base::PosixFileSystem files_;
  std::string path_;
};

TEST_F(ChoiceFile, IsReadBack) {
  ChoiceCache choices = Made();
  EXPECT_TRUE(LoadChoices(files_, path_, choices).ok());  // no file yet
  ASSERT_TRUE(SaveChoices(files_, path_, choices).ok());
  EXPECT_FALSE(choices.changed());
  ChoiceCache read(kContext);
  ASSERT_TRUE(LoadChoices(files_, path_, read).ok());
  EXPECT_EQ(read.ToText(), choices.ToText());
}

TEST_F(ChoiceFile, KeepsWhatOthersWroteMeanwhile) {
  ChoiceCache mine = Made();
  ChoiceCache theirs(kContext);
  theirs.Put("matmul:c", "lt.03");
  theirs.Put("matmul:b", "theirs");
  ASSERT_TRUE(SaveChoices(files_, path_, theirs).ok());
  ASSERT_TRUE(SaveChoices(files_, path_, mine).ok());
  ChoiceCache read(kContext);
  ASSERT_TRUE(LoadChoices(files_, path_, read).ok());
  EXPECT_EQ(*read.Find("matmul:c"), "lt.03");
  EXPECT_EQ(*read.Find("matmul:b"), "lt.02");  // the last save wins
  EXPECT_EQ(read.size(), 3u);
}

TEST_F(ChoiceFile, DamageIsSaidAndThenReplaced) {
  ASSERT_TRUE(base::WriteWholeFile(files_, path_, "troupe choices 1\n").ok());
  ChoiceCache choices = Made();
  const absl::Status status = LoadChoices(files_, path_, choices);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message().find(path_), 0u) << status;
  EXPECT_EQ(choices.size(), 2u);
  ASSERT_TRUE(SaveChoices(files_, path_, choices).ok());
  ChoiceCache read(kContext);
  EXPECT_TRUE(LoadChoices(files_, path_, read).ok());
}

TEST_F(ChoiceFile, WhoeverSavesAtTheSameTimeIsToldSo) {
  ChoiceCache choices = Made();
  const auto lock = files_.Lock(path_ + ".lock", "another process");
  ASSERT_TRUE(lock.ok());
  EXPECT_EQ(SaveChoices(files_, path_, choices).code(),
            absl::StatusCode::kUnavailable);
  EXPECT_TRUE(choices.changed());
}

// Whatever change on the disk fails, or is the last before a crash, the file is
// the old one, the new one, or one that is refused.
TEST_F(ChoiceFile, SurvivesEveryFailure) {
  for (bool crash : {false, true}) {
    int failures = 0;
    for (int change = 0;; ++change) {
      ChoiceCache old(kContext);
      old.Put("matmul:c", "lt.03");
      ASSERT_TRUE(SaveChoices(files_, path_, old).ok());
      ChoiceCache choices = Made();
      base::FaultyFileSystem faulty;
      crash ? faulty.CrashAt(change) : faulty.FailAt(change, EIO);
      const absl::Status saved = SaveChoices(faulty, path_, choices);
      EXPECT_EQ(saved.ok(), !choices.changed());
      if (!faulty.failed()) break;
      ++failures;
      EXPECT_FALSE(saved.ok());
      ChoiceCache read(kContext);
      EXPECT_TRUE(LoadChoices(files_, path_, read).ok()) << change;
      EXPECT_NE(read.Find("matmul:c"), nullptr) << change;
    }
    EXPECT_GT(failures, 4);
  }
}

}  // namespace
}  // namespace troupe::nn
