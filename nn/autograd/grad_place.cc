// The part of BackwardPass that places the gradients of parameters.

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/autograd/tape.h"

namespace troupe::nn {

absl::Status BackwardPass::NeedGradient(Parameter& parameter) {
  if (parameter.grad.defined()) return absl::OkStatus();
  TROUPE_RETURN_IF_ERROR(sink_.GradientNeeded(parameter));
  if (parameter.grad.defined()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the gradient of ", parameter.name,
                   " has no memory: hold its bucket, or keep all gradients "
                   "(nn/arena/parameter_arena.h)"));
}

absl::StatusOr<BackwardPass::GradPlace> BackwardPass::PlaceOf(
    const Tape::Value& value) {
  Parameter& parameter = *value.parameter;
  TROUPE_RETURN_IF_ERROR(NeedGradient(parameter));
  const bool is_first_of_two =
      parameter.first_use.apart && value.uses == 2 && value.uses_left == 1;
  if (!is_first_of_two) {
    return GradPlace{parameter.grad, &parameter.grad_written};
  }
  if (!parameter.first_use.grad.defined()) {
    TROUPE_ASSIGN_OR_RETURN(
        parameter.first_use.grad,
        Tensor::Create(parameter.shape, parameter.grad.dtype(),
                       kernels_.allocator()));
  }
  return GradPlace{parameter.first_use.grad, &parameter.first_use.written};
}

absl::Status AddUses(Kernels& kernels, Parameter& parameter) {
  if (!std::exchange(parameter.first_use.written, false)) {
    return absl::OkStatus();
  }
  const Tensor first = std::exchange(parameter.first_use.grad, Tensor());
  return std::exchange(parameter.grad_written, true)
             ? kernels.Add(parameter.grad, first, parameter.grad)
             : kernels.Copy(first, parameter.grad);
}

}  // namespace troupe::nn
