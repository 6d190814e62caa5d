// The type in which an argument of an op is stored until the op runs, for
// devices that execute asynchronously: tensors stay tensors, whatever their
// role, and everything else is copied.
//
//     std::tuple<HeldArgument<Args>...> held(args...);
//     std::apply([&](auto&... each) { return op(each...); }, held);

#ifndef NN_KERNELS_HELD_ARGUMENT_H_
#define NN_KERNELS_HELD_ARGUMENT_H_

#include <type_traits>

#include "nn/tensor/tensor.h"

namespace troupe::nn {

// Whether an argument of an op is a tensor, in any role (op.h).
template <typename Arg>
inline constexpr bool kIsTensor =
    std::is_convertible_v<const Arg&, const Tensor&>;

template <typename Arg>
using HeldArgument =
    std::conditional_t<kIsTensor<Arg>, Tensor, std::decay_t<Arg>>;

}  // namespace troupe::nn

#endif  // NN_KERNELS_HELD_ARGUMENT_H_
