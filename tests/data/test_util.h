// Helpers for the tests of data/: gathered batches, files, gzip, real data.
//
//   Filled batch = FillFrom(*dataset, {3, 1});   // status, inputs, targets
//   std::string path = WriteTemp("x.bin", bytes);
//   std::vector<uint8_t> packed = Gzip(bytes);
//   std::string folder = FindRealData("mnist");  // empty: skip the test

#ifndef TESTS_DATA_TEST_UTIL_H_
#define TESTS_DATA_TEST_UTIL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "data/dataset.h"

namespace troupe::data {

using Bytes = std::vector<std::uint8_t>;

struct Filled {
  absl::Status status;
  nn::Tensor inputs;
  nn::Tensor targets;
};

// Calls Fill() with tensors of the right shape.
Filled FillFrom(const Dataset& dataset,
                const std::vector<std::int64_t>& indices,
                std::int64_t epoch = 0);

template <typename T>
std::vector<T> ToVector(const nn::Tensor& tensor) {
  const absl::Span<T> values = tensor.span<T>();
  return std::vector<T>(values.begin(), values.end());
}

// Returns the bytes of a text.
Bytes BytesOfText(absl::string_view text);
// Content of the file that git-lfs leaves in place of a large one.
inline constexpr absl::string_view kLfsPointer =
    "version https://git-lfs.github.com/spec/v1\n"
    "oid "
    "sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393"
    "\nsize 548105171\n";

// Returns an empty folder of this test below gtest's temporary one.
std::string MakeTempFolder();
// Writes folder/name and returns its path.
std::string WriteFile(const std::string& folder, const std::string& name,
                      const Bytes& bytes);

Bytes Gzip(const Bytes& bytes);

// Returns an IDX file of unsigned bytes.
Bytes MakeIdx(const std::vector<std::uint32_t>& extents, const Bytes& values);

// Returns the folder `name` of real data: below $TROUPE_DATA, or below a folder
// shared/data of a folder above the sources. Empty if there is none.
std::string FindRealData(const std::string& name);

}  // namespace troupe::data

#endif  // TESTS_DATA_TEST_UTIL_H_
