// Names of parameters of a ResNet and a ViT in other libraries, beside those of
// the models here, which are torchvision's for ResNet and timm's for ViT.
//
//   OurName("encoder.stages.0.layers.1.layer.2.convolution.weight");
//   // {"layer1.1.conv3.weight"}, of Hugging Face's ResNet
//   OurName("layers.0.attention.k_proj.bias");
//   // {"blocks.0.attn.qkv.bias", part 1 of 3}, of Hugging Face's ViT
//   TheirNames(NameStyle::kTransformersVit, "norm.weight");
//   // {"vit.layernorm.weight"}
//
// Layouts are equal, but for queries, keys and values of Hugging Face's ViT,
// which are three tensors there and one here: one above the other. Pure
// functions. The names are those of torchvision 0.29 (and of `linear_1`,
// `linear_2` before 0.13) and of transformers 4 and 5.

#ifndef NN_SERIALIZE_NAME_STYLES_H_
#define NN_SERIALIZE_NAME_STYLES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace troupe::nn {

struct StyledName {
  std::string name;
  int part = 0;   // number of the part along the first axis of the tensor here
  int parts = 1;  // number of tensors there that are one here
};

// Returns the name here of a tensor that another library calls `name`, without
// wrappers; nullopt: none is known.
std::optional<StyledName> OurName(absl::string_view name);

enum class NameStyle { kTransformersResNet, kTransformersVit };

// Returns the names of the parts of which the tensor `name` consists there;
// empty: it has none.
std::vector<std::string> TheirNames(NameStyle style, absl::string_view name);

}  // namespace troupe::nn

#endif  // NN_SERIALIZE_NAME_STYLES_H_
