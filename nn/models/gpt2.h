// GPT-2: a decoder-only transformer over tokens (Radford et al. 2019, "Language
// Models are Unsupervised Multitask Learners"), with Hugging Face's names: its
// files load through nn/serialize/weight_file.h.
//
//   Gpt2Options options = *Gpt2Preset("gpt2");           // 124M parameters
//   options.context = 256;
//   std::unique_ptr<Sequential> model = *MakeGpt2(options);
//
// The input is tokens i64 (N, T), the output logits (N, T, vocabulary); T is at
// most the context. With a key-value cache, one text may have (1, 1,
// vocabulary), for the position that is wanted (Linear::Options::is_head).
//
// Children: wte, wpe, drop, h (a Sequential of blocks "0", "1", ...), ln_f,
// lm_head; so stages begin at "h.6", say. A block is
//
//     x = x + attn(ln_1(x));  y = x + mlp.c_proj(gelu(mlp.c_fc(ln_2(x))))
//
// Ranks along "tp" share the heads and the width of each block's MLP, and the
// vocabulary of wte and lm_head, in padded pieces; the rest is whole on each of
// them (nn/modules/localise.h). They may share the tokens in between, too.
//
// lm_head.weight is wte.weight unless tie_head is false. If the model is cut,
// each stage that uses it holds a copy (pipeline/ties.h).

#ifndef NN_MODELS_GPT2_H_
#define NN_MODELS_GPT2_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nn/modules/sequential.h"

namespace troupe::nn {

struct Gpt2Options {
  int layers = 12;
  std::int64_t heads = 12;
  std::int64_t width = 768;  // a multiple of `heads`
  std::int64_t context = 1024;
  std::int64_t vocab_size = 50257;
  double dropout = 0;            // after the embeddings, before each sum
  double attention_dropout = 0;  // drop probability of attention weights
  bool tie_head = true;
};

// Names of presets: "gpt_nano" (3 layers, 3 heads, 48 wide), "gpt_micro" (4, 4,
// 128), "gpt_mini" (6, 6, 192), as in minGPT; "gpt2" (124M), "gpt2_medium"
// (350M), "gpt2_large" (774M), "gpt2_xl" (1.5B).
std::vector<std::string> Gpt2PresetNames();
//   kNotFound: no preset has this name; lists them.
absl::StatusOr<Gpt2Options> Gpt2Preset(absl::string_view name);

//   kInvalidArgument: an extent is below 1, or `width` no multiple of `heads`.
absl::StatusOr<std::unique_ptr<Sequential>> MakeGpt2(
    const Gpt2Options& options);

}  // namespace troupe::nn

#endif  // NN_MODELS_GPT2_H_
