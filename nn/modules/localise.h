// Makes a model one rank's part of it, for tensor parallelism.
//
//   const AxisPlace places[] = {{"tp", /*coord=*/1, /*size=*/2}};
//   status = LocaliseModel(*model, places);
//   model->Parameters()[0]->shape;          // of the piece
//   model->Parameters()[0]->global_shape;   // of the whole
//
// Layers that declare no cut stay whole. A rank alone along its axes (size 1)
// changes nothing. A layer of one's own overrides Module::Localise(), or calls
// Linear::set_parallel() for the layers in it (docs/parallelism.md).

#ifndef NN_MODULES_LOCALISE_H_
#define NN_MODULES_LOCALISE_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "nn/autograd/sharding.h"
#include "nn/modules/module.h"

namespace troupe::nn {

// Calls Module::Localise() of `model` and of all modules below it, each before
// its children. Call it once, before the model has memory; a model after an
// error is in parts, and should be dropped.
//   kInvalidArgument: a width or number of heads is no multiple of the number
//     of ranks. Names the layer.
absl::Status LocaliseModel(Module& model, absl::Span<const AxisPlace> places);

}  // namespace troupe::nn

#endif  // NN_MODULES_LOCALISE_H_
