#include "nn/serialize/nearest_names.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "nn/serialize/wrapped_names.h"

namespace troupe::nn {
namespace {

// Limits on what is compared and shown.
constexpr std::size_t kMissingMax = 5;
constexpr std::size_t kUnexpectedMax = 2000;
constexpr std::size_t kNameBytesMax = 100;

// Wagner and Fischer 1974, row by row.
std::size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

absl::string_view LastWord(absl::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == absl::string_view::npos ? name : name.substr(dot + 1);
}

}  // namespace

std::vector<std::string> NearestNames(
    const std::vector<std::string>& missing,
    const std::vector<std::string>& unexpected) {
  std::vector<std::string> sentences;
  const std::size_t asked = std::min(missing.size(), kMissingMax);
  const std::size_t offered = std::min(unexpected.size(), kUnexpectedMax);
  for (std::size_t i = 0; i < asked; ++i) {
    const std::string* nearest = nullptr;
    std::size_t least = 0;
    for (std::size_t j = 0; j < offered; ++j) {
      const absl::string_view bare = NamesWithoutWrappers(unexpected[j]).back();
      if (LastWord(bare) != LastWord(missing[i]) ||
          std::max(bare.size(), missing[i].size()) > kNameBytesMax) {
        continue;
      }
      const std::size_t distance = EditDistance(missing[i], bare);
      if (2 * distance > std::max(bare.size(), missing[i].size())) continue;
      if (nearest != nullptr && distance >= least) continue;
      nearest = &unexpected[j];
      least = distance;
    }
    if (nearest == nullptr) continue;
    sentences.push_back(absl::StrCat(missing[i], " may be ", *nearest));
  }
  return sentences;
}

}  // namespace troupe::nn
