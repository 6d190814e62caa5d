#include "nn/tensor/shape.h"

#include <vector>

#include "gtest/gtest.h"

namespace troupe::nn {
namespace {

TEST(Shape, CountsAndIndexesFromBothEnds) {
  Shape images = {32, 28, 24, 3};
  EXPECT_EQ(images.rank(), 4);
  EXPECT_EQ(images.numel(), 32 * 28 * 24 * 3);
  EXPECT_EQ(images[1], 28);
  EXPECT_EQ(images[-1], 3);
  images.set(-1, 5);
  EXPECT_EQ(images.ToString(), "[32, 28, 24, 5]");
}

TEST(Shape, AScalarHasOneElementAndAnEmptyShapeNone) {
  EXPECT_EQ(Shape().numel(), 1);
  EXPECT_EQ(Shape().ToString(), "[]");
  EXPECT_EQ((Shape{4, 0, 2}).numel(), 0);
}

TEST(Shape, EqualOnlyInRankAndExtents) {
  EXPECT_EQ((Shape{2, 3}), Shape(std::vector<std::int64_t>{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE((Shape{2, 3}), (Shape{2, 3, 1}));
}

using Dims = std::vector<std::int64_t>;

TEST(Shape, SaysWhatFits) {
  const std::int64_t big = std::int64_t{1} << 30;
  EXPECT_TRUE(Shape::Fits({}));
  EXPECT_TRUE(Shape::Fits(Dims{0, 28, 28, 1}));
  EXPECT_TRUE(Shape::Fits(Dims{big, big - 1}));
  EXPECT_FALSE(Shape::Fits(Dims{big, big}));
  EXPECT_FALSE(Shape::Fits(Dims{big, big, big})) << "wraps to 2^26";
  EXPECT_FALSE(Shape::Fits(Dims{big, big, big, 0})) << "a product wraps";
  EXPECT_FALSE(Shape::Fits(Dims{2, -1}));
  EXPECT_FALSE(Shape::Fits(Dims(7, 1)));
}

TEST(ShapeDeathTest, RefusesMoreElementsThanCanBeCounted) {
  const std::int64_t big = std::int64_t{1} << 32;
  EXPECT_DEATH((Shape{big, big}), "less than 2\\^60 elements");
  Shape rows = {1, big};
  EXPECT_DEATH(rows.set(0, big), "less than 2\\^60 elements");
  EXPECT_DEATH(rows.set(0, -1), "no negative extent");
}

TEST(ShapeDeathTest, RefusesTooManyOrNegativeExtents) {
  EXPECT_DEATH((Shape{1, 1, 1, 1, 1, 1, 1}), "at most 6 extents");
  EXPECT_DEATH((Shape{2, -1}), "not negative");
}

}  // namespace
}  // namespace troupe::nn
