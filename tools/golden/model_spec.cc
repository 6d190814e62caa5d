#include "tools/golden/model_spec.h"

#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/models/gpt2.h"
#include "nn/models/resnet.h"
#include "nn/models/vgg.h"
#include "nn/models/vit.h"
#include "nn/optim/adam.h"
#include "nn/optim/sgd.h"

namespace troupe::golden {
namespace {

using nlohmann::json;

// Takes the keys of an object one by one; keys left at the end are an error.
class Fields {
 public:
  explicit Fields(const json& spec) : left_(spec) { Take("kind", &kind_); }

  const std::string& kind() const { return kind_; }

  // Sets `value` to that of the key; leaves it if there is no such key.
  template <typename T>
  Fields& Take(const char* key, T* value) {
    const auto found = left_.find(key);
    if (found == left_.end()) return *this;
    try {
      *value = found->get<T>();
    } catch (const json::exception&) {
      status_.Update(absl::InvalidArgumentError(
          absl::StrCat(kind_, ": ", key, " must be ",
                       std::is_same_v<T, bool> ? "true or false" : "a number",
                       ", not ", found->dump())));
    }
    left_.erase(found);
    return *this;
  }

  absl::Status End() const {
    if (!status_.ok() || left_.empty()) return status_;
    return absl::InvalidArgumentError(
        absl::StrCat("\"", kind_, "\" does not take ", left_.dump(),
                     "; remove it, or add it to model_spec.cc"));
  }

 private:
  json left_;
  std::string kind_;
  absl::Status status_;
};

absl::StatusOr<std::unique_ptr<nn::Sequential>> MakeResNet(Fields& fields) {
  int depth = 18;
  bool cifar = false;
  nn::ResNetOptions options;
  TROUPE_RETURN_IF_ERROR(fields.Take("depth", &depth)
                             .Take("width", &options.width)
                             .Take("num_classes", &options.num_classes)
                             .Take("cifar", &cifar)
                             .End());
  if (cifar) options.stem = nn::ResNetStem::kCifar;
  return nn::MakeResNet(depth, options);
}

absl::StatusOr<std::unique_ptr<nn::Sequential>> MakeVgg(Fields& fields) {
  int depth = 11;
  nn::VggOptions options;
  TROUPE_RETURN_IF_ERROR(fields.Take("depth", &depth)
                             .Take("width", &options.width)
                             .Take("hidden", &options.hidden)
                             .Take("num_classes", &options.num_classes)
                             .Take("batch_norm", &options.batch_norm)
                             .Take("dropout", &options.dropout)
                             .End());
  return nn::MakeVgg(depth, options);
}

absl::StatusOr<std::unique_ptr<nn::Sequential>> MakeGpt2(Fields& fields) {
  nn::Gpt2Options options;
  TROUPE_RETURN_IF_ERROR(fields.Take("layers", &options.layers)
                             .Take("heads", &options.heads)
                             .Take("width", &options.width)
                             .Take("context", &options.context)
                             .Take("vocab_size", &options.vocab_size)
                             .End());
  return nn::MakeGpt2(options);
}

absl::StatusOr<std::unique_ptr<nn::Sequential>> MakeVit(Fields& fields) {
  nn::VitOptions options;
  TROUPE_RETURN_IF_ERROR(fields.Take("depth", &options.depth)
                             .Take("heads", &options.heads)
                             .Take("width", &options.width)
                             .Take("image_size", &options.image_size)
                             .Take("patch", &options.patch_size)
                             .Take("num_classes", &options.num_classes)
                             .End());
  return nn::MakeVit(options);
}

}  // namespace

absl::StatusOr<std::unique_ptr<nn::Sequential>> MakeSpecModel(
    const json& spec) {
  Fields fields(spec);
  if (fields.kind() == "resnet") return MakeResNet(fields);
  if (fields.kind() == "vgg") return MakeVgg(fields);
  if (fields.kind() == "gpt2") return MakeGpt2(fields);
  if (fields.kind() == "vit") return MakeVit(fields);
  return absl::InvalidArgumentError(
      absl::StrCat("there is no model \"", fields.kind(),
                   "\"; choose resnet, vgg, gpt2 or vit"));
}

absl::StatusOr<std::unique_ptr<nn::Optimizer>> MakeSpecOptimizer(
    const json& spec) {
  Fields fields(spec);
  if (fields.kind() == "sgd") {
    nn::SgdOptions options;
    TROUPE_RETURN_IF_ERROR(fields.Take("lr", &options.lr)
                               .Take("momentum", &options.momentum)
                               .End());
    TROUPE_RETURN_IF_ERROR(options.Validate());
    return std::make_unique<nn::Sgd>(options);
  }
  if (fields.kind() == "adamw") {
    nn::AdamOptions options = nn::AdamWDefaults();
    TROUPE_RETURN_IF_ERROR(fields.Take("lr", &options.lr).End());
    TROUPE_RETURN_IF_ERROR(options.Validate());
    return std::make_unique<nn::Adam>(options);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "there is no optimizer \"", fields.kind(), "\"; choose sgd or adamw"));
}

}  // namespace troupe::golden
