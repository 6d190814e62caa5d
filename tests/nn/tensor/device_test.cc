#include "nn/tensor/device.h"

#include "gtest/gtest.h"

namespace troupe::nn {
namespace {

TEST(Device, ReadsWhatItPrints) {
  for (const char* text : {"cpu:0", "reference:0", "cuda:3"}) {
    auto device = Device::Parse(text);
    ASSERT_TRUE(device.ok()) << device.status();
    EXPECT_EQ(device->ToString(), text);
  }
  EXPECT_EQ(Device::Parse("cuda:12")->index, 12);
}

TEST(Device, MeansTheFirstOrOneForEachWithoutANumber) {
  EXPECT_EQ(Device::Parse("cpu")->ToString(), "cpu:0");
  EXPECT_EQ(*Device::Parse("cpu"), (Device{DeviceType::kCpu, 0}));
  EXPECT_EQ(*Device::Parse("cuda"),
            (Device{DeviceType::kCuda, Device::kOneForEach}));
  EXPECT_EQ(Device::Parse("cuda")->ToString(), "cuda");
  EXPECT_EQ(Device::Parse("cuda")->ForRank(2).ToString(), "cuda:2");
  EXPECT_EQ(Device::Parse("cuda:1")->ForRank(2).ToString(), "cuda:1");
}

TEST(Device, RefusesOtherTextAndNamesIt) {
  for (const char* text : {"", "gpu", "cpu:", "cpu:x", "cpu:-1", "cpu:0:1",
                           "cpu: 0", ":0", "cuda:99999999999"}) {
    auto device = Device::Parse(text);
    ASSERT_FALSE(device.ok()) << text;
    EXPECT_EQ(device.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(std::string(device.status().message()).find(text),
              std::string::npos)
        << device.status();
  }
}

}  // namespace
}  // namespace troupe::nn
