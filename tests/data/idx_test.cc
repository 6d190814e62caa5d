#include "data/idx.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/data/test_util.h"

namespace troupe::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string ErrorOf(const Bytes& bytes) {
  const auto array = ParseIdx(bytes, "x");
  EXPECT_FALSE(array.ok());
  return std::string(array.status().message());
}

TEST(IdxTest, ReadsOneToFourAxes) {
  const Bytes values = {1, 2, 3, 4, 5, 6};
  for (const std::vector<std::uint32_t>& extents :
       {std::vector<std::uint32_t>{6}, {2, 3}, {3, 1, 2}, {1, 2, 1, 3}}) {
    const Bytes bytes = MakeIdx(extents, values);
    const auto array = ParseIdx(bytes, "x");
    ASSERT_TRUE(array.ok()) << array.status();
    EXPECT_EQ(array->shape.rank(), static_cast<int>(extents.size()));
    EXPECT_EQ(array->shape[-1], extents.back());
    EXPECT_THAT(array->values, ElementsAre(1, 2, 3, 4, 5, 6));
  }
}

TEST(IdxTest, ReadsNoValues) {
  const auto array = ParseIdx(MakeIdx({0, 28, 28}, {}), "x");
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_EQ(array->shape, nn::Shape({0, 28, 28}));
}

TEST(IdxTest, SaysWhatIsWrong) {
  EXPECT_EQ(
      ErrorOf({0, 0}),
      "x: truncated at byte 2 of the magic number; replace it by a whole copy");
  EXPECT_EQ(ErrorOf({'P', 'K', 8, 1}),
            "x: wrong magic number at byte 0: an IDX file begins with 0 0, "
            "this one with 80 75; give an IDX file");
  EXPECT_EQ(ErrorOf({0, 0, 13, 1}),
            "x: element type 13 (float) at byte 2, of which only 8 (unsigned "
            "byte) is "
            "read; convert it");
  EXPECT_EQ(ErrorOf({0, 0, 8, 5}),
            "x: 5 axes at byte 3; 1 to 4 are possible; give an IDX file");
  EXPECT_EQ(ErrorOf({0, 0, 8, 2, 0, 0, 0, 1}),
            "x: truncated at byte 8 of a header of 12 bytes; replace it by a "
            "whole copy");
  EXPECT_EQ(ErrorOf(MakeIdx({2, 2}, {1, 2, 3})),
            "x: truncated at byte 15: the header declares [2, 2], 16 bytes in "
            "all; replace it by a whole copy");
  EXPECT_EQ(ErrorOf(MakeIdx({2}, {1, 2, 3})),
            "x: 1 bytes too many from byte 10 on: the header declares [2]; "
            "replace it by a whole copy");
}

TEST(IdxTest, NamesOtherFormats) {
  EXPECT_EQ(ErrorOf(BytesOfText(kLfsPointer)),
            "x: a pointer of git-lfs, not an IDX file; fetch the file itself "
            "(git lfs pull)");
  EXPECT_EQ(ErrorOf(BytesOfText("\x93NUMPY\1")).substr(0, 30),
            "x: an array of NumPy (.npy), n");
  EXPECT_THAT(
      std::string(ParseIdxFile(Gzip(BytesOfText("<html>404</html>")), "x.gz")
                      .status()
                      .message()),
      HasSubstr("x.gz (inflated): a page of the web (HTML)"));
}

TEST(IdxTest, RefusesImpossibleSizesWithoutMemory) {
  const std::uint32_t big = 0xffffffffu;
  EXPECT_THAT(ErrorOf(MakeIdx({big, big, big, big}, {})),
              HasSubstr("the extents up to byte 8 declare 4294967295 values"));
  EXPECT_THAT(ErrorOf(MakeIdx({1u << 15, 1u << 15, 2}, {})),
              HasSubstr("more than the limit of 1073741824"));
  // A zero does not bring it back, before or after.
  EXPECT_FALSE(ParseIdx(MakeIdx({big, 0}, {}), "x").ok());
  EXPECT_THAT(ErrorOf(MakeIdx({0, big, big}, {})),
              HasSubstr("the extents up to byte 12 declare 4294967295 values"));
  EXPECT_TRUE(ParseIdx(MakeIdx({0, 28, 28}, {}), "x").ok());
}

TEST(IdxTest, ReadsFilesPlainAndPacked) {
  base::PosixFileSystem files;
  const std::string folder = MakeTempFolder();
  const Bytes bytes = MakeIdx({2, 2}, {9, 8, 7, 6});
  for (const std::string& path : {WriteFile(folder, "a", bytes),
                                  WriteFile(folder, "a.gz", Gzip(bytes))}) {
    const auto file = ReadIdx(files, path);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->path, path);
    EXPECT_THAT(file->array.values, ElementsAre(9, 8, 7, 6));
  }
}

TEST(IdxTest, AnArrayOutlivesTheMoveOfItsFile) {
  auto file = ParseIdxFile(MakeIdx({2}, {5, 6}), "x");
  ASSERT_TRUE(file.ok()) << file.status();
  const IdxFile moved = *std::move(file);
  EXPECT_THAT(moved.array.values, ElementsAre(5, 6));
}

TEST(IdxTest, APackedFileHoldsNoMoreThanItsHeaderDeclares) {
  const Bytes bomb = Gzip(MakeIdx({4}, Bytes(50'000'000)));
  EXPECT_EQ(ParseIdxFile(bomb, "b.gz").status().message(),
            "b.gz: inflates to more than the 12 bytes that it may hold; "
            "replace it by a file whose header is right");
  const Bytes promise = Gzip(MakeIdx({1u << 29}, {1, 2, 3}));
  EXPECT_THAT(std::string(ParseIdxFile(promise, "p.gz").status().message()),
              HasSubstr("p.gz (inflated): truncated at byte 11"));
  EXPECT_THAT(
      std::string(ParseIdxFile(Gzip({7, 7, 7, 7}), "m.gz").status().message()),
      HasSubstr("m.gz (inflated): wrong magic number"));
}

}  // namespace
}  // namespace troupe::data
