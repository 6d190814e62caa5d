#include "troupe/comm_hook.h"

#include "absl/strings/str_cat.h"

namespace troupe {
namespace {

// Limit on the parameters that an error names.
constexpr std::size_t kNamedMax = 3;

}  // namespace

std::vector<Tensor> GradBucket::gradients() const {
  std::vector<Tensor> gradients;
  for (const nn::Parameter* parameter : parameters_) {
    gradients.push_back(parameter->grad);
  }
  return gradients;
}

std::string GradBucket::ToString() const {
  std::string text = absl::StrCat("bucket ", index_, " (");
  for (std::size_t i = 0; i < parameters_.size() && i < kNamedMax; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", parameters_[i]->name);
  }
  if (parameters_.size() > kNamedMax) {
    absl::StrAppend(&text, " and ", parameters_.size() - kNamedMax, " more");
  }
  return absl::StrCat(text, ")");
}

}  // namespace troupe
