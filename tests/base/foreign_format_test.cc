#include "base/foreign_format.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace troupe::base {
namespace {

std::string NameOf(const std::string& head) {
  const auto format = RecogniseFormat(head);
  return format.has_value() ? std::string(format->name) : "";
}

TEST(ForeignFormatTest, KnowsFilesByTheirFirstBytes) {
  using namespace std::string_literals;
  const std::pair<std::string, std::string> known[] = {
      {"version https://git-lfs.github.com/spec/v1\noid sha256:4d\nsize 5\n",
       "a pointer of git-lfs"},
      {"\x93NUMPY\1\0"s, "an array of NumPy (.npy)"},
      {"PK\3\4\x14\0\0\0\0\0weights.npy"s, "arrays of NumPy (.npz)"},
      {"PK\3\4\0\0\0\0\0\0archive/data.pkl"s, "a file of torch.save"},
      {"\x80\2\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19."s, "a file of torch.save"},
      {"PK\3\4\x14\0\0\0readme.txt"s, "a zip archive"},
      {"\x80\2}q\0(U\5labelsq\1"s, "a pickle of Python"},
      {"\x80\4\x95\x10\0\0\0\0\0\0\0}"s, "a pickle of Python"},
      {"\x1f\x8b\x08\0\0\0\0\0"s, "a gzip file"},
      {"BZh91AY&SY", "a bzip2 file"},
      {"\xfd\x37zXZ\0"s, "an xz file"},
      {"\x28\xb5\x2f\xfd"s, "a Zstandard file"},
      {std::string(257, 'n') + "ustar", "a tar archive"},
      {"PAR1\x15\4"s, "a Parquet table"},
      {"\x89HDF\r\n\x1a\n"s, "an HDF5 file"},
      {"SQLite format 3\0"s, "an SQLite database"},
      {"\x40\1\0\0\0\0\0\0{\"wte\":"s, "a safetensors file"},
      {"RIFF\x20\0\0\0WEBPVP8 "s, "a WebP image"},
      {"BM\x36\3\0\0\0\0\0\0\x36\0\0\0"s, "a BMP image"},
      {"\0\0\0\x1c\x66typavif"s, "an AVIF image"},
      {"\n <!DOCTYPE HTML>", "a page of the web (HTML)"},
  };
  for (const auto& [head, name] : known) EXPECT_EQ(NameOf(head), name);
}

TEST(ForeignFormatTest, LetsOtherFilesPass) {
  using namespace std::string_literals;
  for (const std::string& head :
       {""s, "To be, or not to be"s, "{\"a\": 1}"s, "text... {\"a\": 1}"s,
        "BMW builds cars in Munich."s, "version 2 of this text"s,
        "\x1f\x8b\x08\xff\0"s, "\x80\2 three"s, std::string(600, '\0')}) {
    EXPECT_EQ(NameOf(head), "") << head;
  }
}

// No beginning of a known file is taken for another one, or read past its end.
TEST(ForeignFormatTest, TakesHeadsOfAnyLength) {
  const std::string pointer = "version https://git-lfs.github.com/spec/v1";
  for (std::size_t size = 0; size < 40; ++size) {
    EXPECT_EQ(NameOf(pointer.substr(0, size)), "");
  }
}

TEST(ForeignFormatTest, RefusesWithAdvice) {
  EXPECT_EQ(RefuseForeignFormat("GIF89a", "x.bin", "not a text").message(),
            "x.bin: a GIF image, not a text; convert or remove it");
  EXPECT_EQ(RefuseForeignFormat("PAR1", "y", "not tokens").code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(RefuseForeignFormat("plain", "y", "not tokens").ok());
}

}  // namespace
}  // namespace troupe::base
