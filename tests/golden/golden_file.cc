#include "tests/golden/golden_file.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/random/philox.h"

namespace troupe::nn {
namespace {

// The linear congruential generator of Numerical Recipes; returns the top 12
// bits of each state.
class Generator {
 public:
  explicit Generator(absl::string_view name) : state_(HashName(name)) {}
  std::uint32_t Next() {
    state_ = state_ * 1664525u + 1013904223u;
    return state_ >> 20;
  }

 private:
  std::uint32_t state_;
};

template <typename T>
std::vector<double> Widened(const char* data, std::size_t bytes) {
  std::vector<double> values(bytes / sizeof(T));
  for (double& value : values) {
    T element;
    std::memcpy(&element, data, sizeof(T));
    value = element;
    data += sizeof(T);
  }
  return values;
}

}  // namespace

absl::StatusOr<GoldenFile> GoldenFile::Open(absl::string_view name) {
  const std::string path = absl::StrCat("tests/golden/", name, ".safetensors");
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot open ", path));
  std::string bytes(std::istreambuf_iterator<char>(file), {});
  std::uint64_t header_bytes = 0;
  if (bytes.size() >= sizeof(header_bytes)) {
    std::memcpy(&header_bytes, bytes.data(), sizeof(header_bytes));
  }
  const std::size_t data_begin = sizeof(header_bytes) + header_bytes;
  if (header_bytes == 0 || bytes.size() < data_begin) {
    return absl::DataLossError(absl::StrCat(path, " is cut short"));
  }
  GoldenFile golden;
  golden.header_ = nlohmann::json::parse(
      bytes.substr(sizeof(header_bytes), header_bytes), nullptr,
      /*allow_exceptions=*/false);
  if (golden.header_.is_discarded()) {
    return absl::DataLossError(absl::StrCat(path, " has no JSON header"));
  }
  golden.data_ = bytes.substr(data_begin);
  const std::string spec = golden.header_["__metadata__"]["spec"];
  golden.spec_ = nlohmann::json::parse(spec);
  return golden;
}

std::vector<double> GoldenFile::Values(const std::string& tensor) const {
  TROUPE_CHECK(Has(tensor), tensor.c_str());
  const nlohmann::json& entry = header_[tensor];
  const std::size_t begin = entry["data_offsets"][0];
  const std::size_t end = entry["data_offsets"][1];
  TROUPE_CHECK(begin <= end && end <= data_.size(), tensor.c_str());
  return entry["dtype"] == "F64"
             ? Widened<double>(data_.data() + begin, end - begin)
             : Widened<float>(data_.data() + begin, end - begin);
}

std::vector<double> GoldenInput(absl::string_view name, std::int64_t count,
                                double scale) {
  Generator generator(name);
  std::vector<double> values(count);
  for (double& value : values) {
    value = (static_cast<double>(generator.Next()) - 2048) / 2048 * scale;
  }
  return values;
}

std::vector<double> GoldenLabels(absl::string_view name, std::int64_t count,
                                 std::int64_t classes, bool ignore_fifth) {
  Generator generator(name);
  std::vector<double> values(count);
  for (std::int64_t i = 0; i < count; ++i) {
    values[i] = static_cast<double>(generator.Next() % classes);
    if (ignore_fifth && i % 5 == 4) values[i] = -100;
  }
  return values;
}

Shape ShapeOf(const nlohmann::json& extents) {
  return Shape(extents.get<std::vector<std::int64_t>>());
}

}  // namespace troupe::nn
