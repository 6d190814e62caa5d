// A trained model in the form of Hugging Face's transformers: names and layouts
// of its tensors, and the config.json that describes it.
//
//   TROUPE_ASSIGN_OR_RETURN(const TransformersModel model,
//                           AsTransformers(tensors, /*heads=*/12, memory));
//   absl::Status s = WriteSafetensors(files, "out/model.safetensors",
//                                     model.tensors, {{"format", "pt"}});
//   // GPT2LMHeadModel.from_pretrained("out")
//
// GPT-2 becomes a GPT2LMHeadModel, ResNet a ResNetForImageClassification, ViT a
// ViTForImageClassification. Sizes are those of the tensors; only the number of
// heads is in none of them.

#ifndef NN_SERIALIZE_TRANSFORMERS_MODEL_H_
#define NN_SERIALIZE_TRANSFORMERS_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn/serialize/safetensors.h"

namespace troupe::nn {

struct TransformersModel {
  std::vector<NamedTensor> tensors;
  std::string config;  // JSON
};

// `tensors` are named as in a model here. `heads` of attention; a ResNet has
// none, 0.
//   kInvalidArgument: the model is none of these, its width is no multiple of
//     `heads`, or it is a ResNet with a stem that transformers lacks.
absl::StatusOr<TransformersModel> AsTransformers(
    absl::Span<const NamedTensor> tensors, std::int64_t heads,
    Allocator& allocator);

}  // namespace troupe::nn

#endif  // NN_SERIALIZE_TRANSFORMERS_MODEL_H_
