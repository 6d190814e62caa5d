// Makes a model one rank's part of it, for tensor parallelism.
//
//   const AxisPlace places[] = {{"tp", /*coord=*/1, /*size=*/2}};
//   status = LocaliseModel(*model, places);
//   model->Parameters()[0]->shape;          // of the piece
//   model->Parameters()[0]->global_shape;   // of the whole
//
// Ranks may also share the tokens of each sequence between these layers, if the
// model declares it (Module::set_shares_tokens()):
//
//   const AxisPlace shared[] = {{"tp", 1, 2, /*sequence=*/true}};
//   status = LocaliseModel(*model, shared);
//
// Layers that declare no cut stay whole. A rank alone along its axes (size 1)
// changes nothing. A layer of one's own overrides Module::Localise(), or calls
// Linear::set_parallel() for the layers in it (docs/parallelism.md).

#ifndef NN_MODULES_LOCALISE_H_
#define NN_MODULES_LOCALISE_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "nn/autograd/sharding.h"
#include "nn/modules/module.h"
#include "nn/ops/loss.h"

namespace troupe::nn {

// Calls Module::Localise() of `model` and of all modules below it, each before
// its children. Call it once, before the model has memory; a model after an
// error is in parts, and should be dropped.
//   kInvalidArgument: a width or number of heads is no multiple of the number
//     of ranks, or modules share a parameter that not all of them cut, or use
//     for a rank's tokens. Names the layer. Or ranks share tokens, and the
//     model declares nothing of the kind.
//   kFailedPrecondition: the model is a part already, or has memory.
absl::Status LocaliseModel(Module& model, absl::Span<const AxisPlace> places);

// Makes the head of a part leave its logits split (Linear::kVocabulary), for a
// loss that takes them so, and returns how they are split. Returns none, and
// changes nothing, if the last layer of `model`, a Sequential, is no such head:
// its output is whole then.
std::optional<ops::SplitLogits> KeepLogitsSplit(Module& model);

}  // namespace troupe::nn

#endif  // NN_MODULES_LOCALISE_H_
