#include "tests/data/test_util.h"

#include <stdlib.h>
#include <zlib.h>

#include <climits>
#include <cstdlib>
#include <fstream>

#include "base/files/file_system.h"
#include "gtest/gtest.h"

namespace troupe::data {

Filled FillFrom(const Dataset& dataset,
                const std::vector<std::int64_t>& indices, std::int64_t epoch) {
  nn::CachingAllocator allocator;
  const SampleSpec& spec = dataset.spec();
  const std::int64_t count = static_cast<std::int64_t>(indices.size());
  Filled filled;
  filled.inputs =
      nn::Tensor::Empty(spec.InputShape(count), spec.input_dtype, allocator);
  filled.targets =
      nn::Tensor::Empty(spec.TargetShape(count), spec.target_dtype, allocator);
  filled.status = dataset.Fill(indices, epoch, filled.inputs, filled.targets);
  return filled;
}

Bytes BytesOfText(absl::string_view text) {
  return Bytes(text.begin(), text.end());
}

std::string MakeTempFolder() {
  std::string folder = base::JoinPath(testing::TempDir(), "data_XXXXXX");
  EXPECT_NE(mkdtemp(folder.data()), nullptr) << folder;
  return folder;
}

std::string WriteFile(const std::string& folder, const std::string& name,
                      const Bytes& bytes) {
  const std::string path = base::JoinPath(folder, name);
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  EXPECT_TRUE(file.good()) << path;
  return path;
}

Bytes Gzip(const Bytes& bytes) {
  z_stream stream{};
  EXPECT_EQ(
      deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY),
      Z_OK);
  Bytes packed(deflateBound(&stream, bytes.size()));
  stream.next_in = const_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

Bytes MakeIdx(const std::vector<std::uint32_t>& extents, const Bytes& values) {
  Bytes bytes = {0, 0, 8, static_cast<std::uint8_t>(extents.size())};
  for (std::uint32_t extent : extents) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      bytes.push_back(static_cast<std::uint8_t>(extent >> shift));
    }
  }
  bytes.insert(bytes.end(), values.begin(), values.end());
  return bytes;
}

std::string FindRealData(const std::string& name) {
  const char* given = std::getenv("TROUPE_DATA");
  if (given != nullptr) {
    const std::string folder = base::JoinPath(given, name);
    return base::PosixFileSystem().Exists(folder) ? folder : "";
  }
  // Bazel links this file to the one in the source tree.
  char resolved[PATH_MAX];
  if (realpath("tests/data/BUILD", resolved) == nullptr) return "";
  std::string above = resolved;
  while (!above.empty()) {
    const std::string folder = above + "/shared/data/" + name;
    if (base::PosixFileSystem().Exists(folder)) return folder;
    above.resize(above.rfind('/'));
  }
  return "";
}

}  // namespace troupe::data
