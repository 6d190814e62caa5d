#include "tests/data/images/golden_images.h"

#include <cstdlib>
#include <fstream>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace troupe::data {
namespace {

Bytes Unescaped(const nlohmann::json& text) {
  std::string bytes;
  EXPECT_TRUE(absl::Base64Unescape(text.get<std::string>(), &bytes));
  return BytesOfText(bytes);
}

std::vector<GoldenImage> ReadFrom(const std::string& path) {
  std::ifstream in(path);
  std::vector<GoldenImage> all;
  for (const nlohmann::json& entry : nlohmann::json::parse(in)) {
    GoldenImage golden;
    golden.name = entry["name"].get<std::string>();
    golden.file = Unescaped(entry["bytes"]);
    golden.image.width = entry["width"].get<std::int64_t>();
    golden.image.height = entry["height"].get<std::int64_t>();
    golden.image.pixels = Unescaped(entry["pixels"]);
    all.push_back(std::move(golden));
  }
  return all;
}

}  // namespace

std::vector<GoldenImage> ReadGoldenImages() {
  return ReadFrom("tests/data/images/golden/images.json");
}

std::vector<GoldenImage> MakeGoldenImages() {
  const std::string python = "tools/lib/peer_python.sh ";
  if (std::system((python + "-c 'import PIL' 2>/dev/null").c_str()) != 0) {
    return {};
  }
  const std::string path = MakeTempFolder() + "/images.json";
  const std::string make =
      python + "tests/data/images/golden/make_images.py 100 12 >" + path;
  EXPECT_EQ(std::system(make.c_str()), 0);
  return ReadFrom(path);
}

Bytes GoldenFileOf(const std::string& name) {
  for (GoldenImage& golden : ReadGoldenImages()) {
    if (golden.name == name) return std::move(golden.file);
  }
  ADD_FAILURE() << "no golden image " << name;
  return {};
}

}  // namespace troupe::data
