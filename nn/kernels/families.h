// A list of families of ops, as one class that has the ops of all of them.
// kernels.h has the list of every kernel set.
//
//   using Images = Families<Conv2dKernels, Pool2dKernels>;
//   Images images;
//   int families = 0, ops = 0;
//   images.ForEachFamily([&](auto& family) { ++families; });
//   Images::ForEachOp([&](auto op) { ++ops; });
//
// A backend binds its kernels by a loop over the list: it declares a template
// BindFamily() without a body, and the file of each family specializes it. A
// family that lacks its file is an undefined reference to BindFamily<Family>().

#ifndef NN_KERNELS_FAMILIES_H_
#define NN_KERNELS_FAMILIES_H_

#include <type_traits>

namespace troupe::nn {

template <typename... Family>
struct Families : Family... {
  // True if `Other` is one of the families.
  template <typename Other>
  static constexpr bool kHas = (std::is_same_v<Other, Family> || ...);

  // Calls visit(family) for each family of this object, in the order of the
  // list.
  template <typename Visit>
  void ForEachFamily(Visit visit) {
    (visit(static_cast<Family&>(*this)), ...);
  }

  // Calls visit(op) for every op of every family, with a pointer to the member:
  //
  //   Kernels::ForEachOp([&](auto op) { LOG((kernels.*op).name()); });
  template <typename Visit>
  static void ForEachOp(Visit visit) {
    (Family::ForEachOp(visit), ...);
  }
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_FAMILIES_H_
