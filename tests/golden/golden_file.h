// Reads the expected values that tools/golden/make_golden.py computed with
// PyTorch, and recomputes the inputs, which are not stored.
//
//   GoldenFile golden = *GoldenFile::Open("ops_f64");
//   std::vector<double> dx = golden.Values("relu/dx");
//   std::vector<double> x = GoldenInput("relu/x", 50, /*scale=*/1);
//   golden.spec()["cases"][0]["name"];                    // "linear"
//
// The files are safetensors; their metadata holds the cases as JSON.

#ifndef TESTS_GOLDEN_GOLDEN_FILE_H_
#define TESTS_GOLDEN_GOLDEN_FILE_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nn/tensor/shape.h"

namespace troupe::nn {

class GoldenFile {
 public:
  // Reads tests/golden/<name>.safetensors, relative to the root of the
  // runfiles.
  //
  // Errors: kNotFound, if the file does not exist; kDataLoss, if it is
  // truncated or its header is not JSON.
  static absl::StatusOr<GoldenFile> Open(absl::string_view name);

  const nlohmann::json& spec() const { return spec_; }
  bool Has(const std::string& tensor) const { return header_.contains(tensor); }
  // CHECK-fails on a name that is not in the file.
  std::vector<double> Values(const std::string& tensor) const;

 private:
  nlohmann::json header_, spec_;
  std::string data_;
};

// Returns pseudorandom multiples of scale / 2048 in [-scale, scale), seeded by
// `name`, as formula() of make_golden.py does.
std::vector<double> GoldenInput(absl::string_view name, std::int64_t count,
                                double scale);

// Returns labels from the same generator; with `ignore_fifth`, every fifth is
// -100.
std::vector<double> GoldenLabels(absl::string_view name, std::int64_t count,
                                 std::int64_t classes, bool ignore_fifth);

// Converts a JSON list of extents.
Shape ShapeOf(const nlohmann::json& extents);

}  // namespace troupe::nn

#endif  // TESTS_GOLDEN_GOLDEN_FILE_H_
