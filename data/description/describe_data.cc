#include "data/description/describe_data.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "data/description/class_names.h"
#include "data/description/compare_data.h"

namespace troupe::data {
namespace {

bool IsSeeded(const std::string& kind) {
  return kind == "glyphs" || kind == "synthetic" || kind == "images";
}

bool HasPixels(const std::string& kind) {
  return kind == "glyphs" || kind == "mnist" || kind == "cifar10" ||
         kind == "images";
}

}  // namespace

std::map<std::string, std::string> DescribeData(const DatasetOptions& options) {
  const std::string& kind = options.kind;
  std::map<std::string, std::string> data = {{"kind", kind}};
  const double share = options.part.validation_share;
  if (share > 0) data["validation_share"] = absl::StrCat(share);
  if (IsSeeded(kind) || share > 0) data["seed"] = absl::StrCat(options.seed);
  if (HasPixels(kind)) {
    data["normalize"] = options.normalize ? "true" : "false";
  }
  if (kind == "text") data["tokenizer"] = options.text.tokenizer;
  if (kind == "text" || kind == "tokens") {
    data["context"] = absl::StrCat(options.text.context);
  }
  const std::int64_t size = options.images.size;
  if (kind == "images") data["size"] = absl::StrCat(size);
  return data;
}

std::map<std::string, std::string> DescribeData(const DatasetOptions& options,
                                                const DataSplits& splits) {
  std::map<std::string, std::string> data = DescribeData(options);
  if (!splits.content.empty()) data[kContentEntry] = splits.content;
  if (splits.tokenizer != nullptr) {
    data["vocabulary"] = VocabularyHash(*splits.tokenizer);
  }
  if (!splits.classes.empty()) {
    data[kClassesEntry] = ClassNames(splits.classes);
  }
  return data;
}

}  // namespace troupe::data
