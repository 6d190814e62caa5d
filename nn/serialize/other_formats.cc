#include "nn/serialize/other_formats.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "base/foreign_format.h"

namespace troupe::nn {
namespace {

absl::string_view AdviceFor(const base::ForeignFormat& format) {
  switch (format.contents) {
    case base::Contents::kPickle:
      return "save the model's state dict by torch.save, or as safetensors";
    case base::Contents::kNumPy:
      return "write it by safetensors.numpy.save_file";
    case base::Contents::kWeights:
      return "take the model's safetensors file, or write one";
    default:
      return format.advice;
  }
}

}  // namespace

std::string OtherFormat(absl::string_view head) {
  const std::optional<base::ForeignFormat> format = base::RecogniseFormat(head);
  if (!format || format->contents == base::Contents::kSafetensors) return "";
  return absl::StrCat(format->name, "; ", AdviceFor(*format));
}

}  // namespace troupe::nn
