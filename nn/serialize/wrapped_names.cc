#include "nn/serialize/wrapped_names.h"

#include "absl/strings/strip.h"

namespace troupe::nn {
namespace {

constexpr absl::string_view kWrappers[] = {
    "module.",                      // DistributedDataParallel, DeepSpeed
    "_orig_mod.",                   // torch.compile
    "model.",                       // Lightning, Hugging Face
    "net.",                         // a LightningModule's usual attribute
    "transformer.",                 // GPT2LMHeadModel
    "vit.",                         // ViTForImageClassification
    "resnet.",                      // ResNetForImageClassification
    "backbone.",                    // detection, self-supervised training
    "base_model.",                  // PEFT, around "model."
    "_forward_module.",             // Lightning Fabric
    "_fsdp_wrapped_module.",        // FullyShardedDataParallel
    "_checkpoint_wrapped_module.",  // checkpoint_wrapper()
};

bool RemoveWrapper(absl::string_view& name) {
  for (absl::string_view wrapper : kWrappers) {
    if (absl::ConsumePrefix(&name, wrapper)) return true;
  }
  return false;
}

}  // namespace

std::vector<absl::string_view> NamesWithoutWrappers(absl::string_view name) {
  std::vector<absl::string_view> names = {name};
  for (int i = 0; i < kWrappersMax && RemoveWrapper(name); ++i) {
    names.push_back(name);
  }
  return names;
}

}  // namespace troupe::nn
