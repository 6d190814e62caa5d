// The expected numbers are PyTorch 2.15's interpolate(size, mode="bilinear",
// antialias=True) of the same pattern as f32.

#include "data/images/resize.h"

#include "gtest/gtest.h"
#include "tests/data/images/encode.h"

namespace troupe::data {
namespace {

std::vector<float> Resized(const Image& image, const CropRegion& region) {
  std::vector<float> values(region.window.height * region.window.width *
                            kImageChannels);
  ResizeBilinear(image, region, values.data());
  return values;
}

CropRegion Whole(const Box& box, std::int64_t height, std::int64_t width) {
  return {box, height, width, {0, 0, height, width}};
}

void ExpectBegins(const std::vector<float>& values,
                  const std::vector<float>& expected) {
  ASSERT_GE(values.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(values[i], expected[i], 1e-3) << i;
  }
}

TEST(ResizeTest, SmallerEqualsPyTorch) {
  ExpectBegins(Resized(Pattern(7, 9), Whole({0, 0, 7, 9}, 3, 4)),
               {75.6286,  139.2082, 168.3061, 164.6725, 120.7944, 131.3275,
                98.8676,  116.9965, 148.9512, 155.8,    114.9061, 101.1796,
                151.9025, 152.2924, 136.3328, 124.1435, 129.5983, 153.7848,
                127.3888, 113.2425, 154.5567, 135.6975, 126.2487, 119.8118,
                154.7878, 90.8816,  122.5837, 112.2892, 141.6028, 126.7631,
                163.7805, 131.1847, 127.5784, 91.2857,  114.2041, 113.6123});
}

TEST(ResizeTest, LargerEqualsPyTorch) {
  ExpectBegins(
      Resized(Pattern(7, 9), Whole({0, 0, 7, 9}, 10, 12)),
      {0.0,     71.0,    142.0,   33.125,  104.125, 175.125, 72.875,  143.875,
       214.875, 112.625, 183.625, 222.625, 152.375, 223.375, 70.375,  192.125,
       103.125, 78.125,  135.875, 46.875,  117.875, 15.625,  86.625,  157.625,
       55.375,  126.375, 197.375, 95.125,  166.125, 77.125,  134.875, 205.875,
       20.875,  168.0,   239.0,   54.0});
}

TEST(ResizeTest, ABoxEqualsPyTorchOnTheCroppedImage) {
  ExpectBegins(Resized(Pattern(7, 9), Whole({1, 2, 5, 7}, 2, 3)),
               {158.1039, 98.0909, 148.6234, 112.4332, 119.123, 153.877,
                166.6494, 96.2987, 126.5195, 110.7532, 154.1169, 138.4675,
                146.7326, 128.1283, 153.3315, 103.5065, 127.026, 104.8312});
}

TEST(ResizeTest, SameSizeIsTheImage) {
  const Image image = Pattern(7, 9);
  const std::vector<float> values = Resized(image, Whole({0, 0, 7, 9}, 7, 9));
  EXPECT_EQ(values,
            std::vector<float>(image.pixels.begin(), image.pixels.end()));
}

TEST(ResizeTest, AWindowHasTheBitsOfTheWhole) {
  const Image image = Pattern(31, 40);
  const std::vector<float> whole =
      Resized(image, Whole({3, 2, 25, 33}, 14, 19));
  CropRegion part = Whole({3, 2, 25, 33}, 14, 19);
  part.window = {4, 5, 6, 7};
  const std::vector<float> values = Resized(image, part);
  for (std::int64_t y = 0; y < 6; ++y) {
    for (std::int64_t i = 0; i < 7 * kImageChannels; ++i) {
      EXPECT_EQ(values[y * 7 * kImageChannels + i],
                whole[((y + 4) * 19 + 5) * kImageChannels + i]);
    }
  }
}

TEST(ResizeTest, ExtremeSizes) {
  const std::vector<float> one =
      Resized(Plain(300, 1, 10, 20, 30), Whole({0, 0, 300, 1}, 1, 5));
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_NEAR(one[i], 10.0f * static_cast<float>(i % 3 + 1), 1e-4);
  }
}

}  // namespace
}  // namespace troupe::data
