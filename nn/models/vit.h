// Vision transformers (Dosovitskiy et al. 2021, arXiv:2010.11929), with the
// names and layouts of timm's, whose weights load without conversion.
//
//   VitOptions options = *VitPreset("vit_tiny");
//   options.image_size = 32;
//   options.patch_size = 4;
//   options.num_classes = 10;
//   std::unique_ptr<Sequential> model = *MakeVit(options);
//
// Images are (N, H, W, C) with H = W = image_size. Children: patch_embed, one
// without a name that holds cls_token and pos_embed, blocks (a Sequential "0",
// "1", ...), norm, pool, head; so stages begin at "blocks.6", say. A block is
//
//     x = x + attn.proj(attention(attn.qkv(norm1(x))))
//     y = x + mlp.fc2(gelu(mlp.fc1(norm2(x))))
//
// Ranks along "tp" share the heads and the width of each block's MLP; the rest
// is whole on each of them (nn/modules/localise.h). They may share the tokens
// in between, too, the class token among them: 1 + (image_size / patch_size)^2.

#ifndef NN_MODELS_VIT_H_
#define NN_MODELS_VIT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nn/modules/sequential.h"

namespace troupe::nn {

struct VitOptions {
  int depth = 12;
  std::int64_t heads = 12;
  std::int64_t width = 768;  // a multiple of `heads`
  std::int64_t image_size = 224;
  std::int64_t patch_size = 16;  // divides image_size
  std::int64_t in_channels = 3;
  std::int64_t num_classes = 1000;
};

// Names of presets: "vit_tiny" (192 wide, 3 heads), "vit_small" (384, 6),
// "vit_base" (768, 12), with twelve blocks each and patches of 16x16.
std::vector<std::string> VitPresetNames();
//   kNotFound: no preset has this name; lists them.
absl::StatusOr<VitOptions> VitPreset(absl::string_view name);

//   kInvalidArgument: an extent is below 1, `width` no multiple of `heads`, or
//     `image_size` no multiple of `patch_size`.
absl::StatusOr<std::unique_ptr<Sequential>> MakeVit(const VitOptions& options);

}  // namespace troupe::nn

#endif  // NN_MODELS_VIT_H_
