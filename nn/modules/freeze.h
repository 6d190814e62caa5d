// Freezes parameters, for fine-tuning the head of a trained network.
//
//   TROUPE_RETURN_IF_ERROR(FreezeParameters(*model, {"1.*"}));
//
// A frozen parameter has no gradient, no optimizer state and no place in a
// bucket, so it costs no traffic; it is saved and loaded like the others. Its
// inputs get their gradients. The same as PyTorch's p.requires_grad_(False).
//
// A pattern is a parameter's full name, in which each * matches any text:
// "features.*", "*.bias", "h.0.*". Call it when the model is made, before a
// plan or an arena is made from it.

#ifndef NN_MODULES_FREEZE_H_
#define NN_MODULES_FREEZE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "nn/modules/module.h"

namespace troupe::nn {

// Whether `text` matches `pattern`.
bool MatchesPattern(absl::string_view pattern, absl::string_view text);

//   kInvalidArgument: a pattern matches no parameter; names it, and a few of
//     the model's parameters.
absl::Status FreezeParameters(Module& model,
                              absl::Span<const std::string> patterns);

}  // namespace troupe::nn

#endif  // NN_MODULES_FREEZE_H_
