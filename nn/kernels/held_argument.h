// An argument of an op as it is kept until the op's turn comes, for devices
// that work later than they are told: tensors stay tensors, whatever their
// role, and everything else is copied.
//
//     std::tuple<HeldArgument<Args>...> held(args...);
//     std::apply([&](auto&... each) { return op(each...); }, held);

#ifndef NN_KERNELS_HELD_ARGUMENT_H_
#define NN_KERNELS_HELD_ARGUMENT_H_

#include <type_traits>

#include "nn/tensor/tensor.h"

namespace troupe::nn {

// Whether an argument of an op is a tensor, in whatever role (op.h).
template <typename Arg>
inline constexpr bool kIsTensor =
    std::is_convertible_v<const Arg&, const Tensor&>;

template <typename Arg>
using HeldArgument =
    std::conditional_t<kIsTensor<Arg>, Tensor, std::decay_t<Arg>>;

}  // namespace troupe::nn

#endif  // NN_KERNELS_HELD_ARGUMENT_H_
