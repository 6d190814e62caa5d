// Makes models and optimizers from the JSON objects of this folder's scripts:
// one object makes the same model here and, with make_model() of
// torch_models.py, in PyTorch.
//
//   const nlohmann::json model = {{"kind", "resnet"}, {"depth", 18}};
//   const nlohmann::json sgd = {{"kind", "sgd"}, {"lr", 0.1}};
//   status = MakeSpecModel(model).status();
//   status = MakeSpecOptimizer(sgd).status();
//
// Kinds of models, with the arguments of their classes there, each optional:
//     resnet  depth, width, num_classes, cifar
//     vgg     depth, width, hidden, num_classes, batch_norm, dropout
//     gpt2    layers, heads, width, context, vocab_size
//     vit     depth, heads, width, image_size, patch, num_classes
// Kinds of optimizers: sgd (lr, momentum) and adamw (lr).
//
// Errors: kInvalidArgument for a kind or a key that is not listed, a value of
// another type, or a value that the model rejects.

#ifndef TOOLS_GOLDEN_MODEL_SPEC_H_
#define TOOLS_GOLDEN_MODEL_SPEC_H_

#include <memory>
#include <nlohmann/json.hpp>

#include "absl/status/statusor.h"
#include "nn/modules/sequential.h"
#include "nn/optim/optimizer.h"

namespace troupe::golden {

absl::StatusOr<std::unique_ptr<nn::Sequential>> MakeSpecModel(
    const nlohmann::json& spec);

absl::StatusOr<std::unique_ptr<nn::Optimizer>> MakeSpecOptimizer(
    const nlohmann::json& spec);

}  // namespace troupe::golden

#endif  // TOOLS_GOLDEN_MODEL_SPEC_H_
