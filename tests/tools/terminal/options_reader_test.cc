#include "tools/trainer/terminal/options_reader.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace troupe::tools {
namespace {

using Words = std::vector<std::string>;

class OptionsReaderTest : public ::testing::Test {
 protected:
  OptionsReaderTest() {
    reader_.Text("--dir=certs", &dir_);
    reader_.List("--hosts=n1,n2", &hosts_);
    reader_.Number("--days=365", /*min=*/1, /*max=*/400, &days_);
    reader_.Real("--share=0.5", /*min=*/0, /*max=*/1, &share_);
    reader_.Texts("--set=a=1", &sets_);
    reader_.Flag("--listen", &listen_);
  }

  // Returns "help", "read", or the error. `left` gets the arguments not read.
  std::string Read(const Words& words, Words* left = nullptr) {
    Arguments arguments(words);
    const absl::StatusOr<bool> help = reader_.Read(arguments);
    if (!help.ok()) return std::string(help.status().message());
    if (left != nullptr) *left = arguments.Rest();
    return *help ? "help" : "read";
  }

  OptionsReader reader_{"do"};
  std::string dir_ = "as it was";
  Words hosts_;
  int days_ = 7;
  double share_ = 0.25;
  Words sets_;
  bool listen_ = false;
};

TEST_F(OptionsReaderTest, ValuesGoToTheirPlaces) {
  EXPECT_EQ(Read({"--hosts=a,,b", "--days", "30", "--listen"}), "read");
  EXPECT_EQ(hosts_, Words({"a", "b"}));
  EXPECT_EQ(days_, 30);
  EXPECT_TRUE(listen_);
  EXPECT_EQ(dir_, "as it was");
}

TEST_F(OptionsReaderTest, SomeMayBeRepeated) {
  EXPECT_EQ(Read({"--set", "a=1", "--share=0.75", "--set=b=2,3"}), "read");
  EXPECT_EQ(sets_, Words({"a=1", "b=2,3"}));
  EXPECT_EQ(share_, 0.75);
}

TEST_F(OptionsReaderTest, OthersGoTogether) {
  Words others;
  reader_.Others(&others);
  EXPECT_EQ(Read({"a.jpg", "--listen", "b.jpg"}), "read");
  EXPECT_EQ(others, Words({"a.jpg", "b.jpg"}));
  EXPECT_EQ(Read({"-x"}),
            "unknown option -x; run \"trainer do --help\" for a list");
}

TEST_F(OptionsReaderTest, HelpEndsIt) {
  Words left;
  EXPECT_EQ(Read({"--days=2", "-h", "--nonsense"}, &left), "help");
  EXPECT_EQ(left, Words({"--nonsense"}));
}

TEST_F(OptionsReaderTest, WhatIsWrongIsNamed) {
  EXPECT_EQ(Read({"--dir"}), "--dir needs a value; write --dir=certs");
  EXPECT_EQ(Read({"--days=401"}), "--days=401: must be a number from 1 to 400");
  EXPECT_EQ(Read({"--days=1x"}), "--days=1x: must be a number from 1 to 400");
  EXPECT_EQ(Read({"--share=1.5"}), "--share=1.5: must be a number from 0 to 1");
  EXPECT_EQ(Read({"--share=nan"}), "--share=nan: must be a number from 0 to 1");
  EXPECT_EQ(Read({"--listen=1"}),
            "--listen=1: it takes no value; write --listen");
  EXPECT_EQ(Read({"--foo"}),
            "unknown option --foo; run \"trainer do --help\" for a list");
  EXPECT_EQ(Read({"--"}),
            "unknown option --; run \"trainer do --help\" for a list");
  EXPECT_EQ(days_, 7);
}

TEST_F(OptionsReaderTest, WhatStandsBehindTwoDashesIsLeft) {
  reader_.EndAtTwoDashes(", and more");
  Words left;
  EXPECT_EQ(Read({"--days=2", "--", "--days=3"}, &left), "read");
  EXPECT_EQ(days_, 2);
  EXPECT_EQ(left, Words({"--days=3"}));
  EXPECT_EQ(
      Read({"--foo"}),
      "unknown option --foo; run \"trainer do --help\" for a list, and more");
}

TEST(OptionsReader, PathsHaveNoTilde) {
  const auto read = [](const std::vector<std::string>& arguments,
                       std::string* out) {
    OptionsReader reader("export");
    reader.Path("--out=glyphs.safetensors", out);
    Arguments left(arguments);
    return reader.Read(left).status();
  };
  std::string out;
  EXPECT_EQ(read({"--out=./~a/b"}, &out), absl::OkStatus());
  EXPECT_EQ(out, "./~a/b");
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--out=~/a"}, {"--out", "~/a"}}) {
    EXPECT_EQ(
        read(arguments, &out),
        absl::InvalidArgumentError(
            "--out=~/a: must have the home folder written out ($HOME on a "
            "command line), since only a shell reads \"~\"; a name that "
            "begins so is \"./~\""));
  }
}

}  // namespace
}  // namespace troupe::tools
