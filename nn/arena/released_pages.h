// Gives memory of the host back to the system while its addresses stay valid,
// for values that a rank has only between two gathers: tensors, and what a
// backward saves of them, go on pointing there.
//
//   ReleasePages(elems);                  // their values are lost
//   elems.raw();                          // the same address as before
//   Write(elems);                         // takes memory again
//
// Only whole pages are given back, so that values beside `elems` stay. Released
// elements read as zeros or, in builds with assertions or a sanitizer, as NaN
// (all bits are 1), and no page is given back: so a test finds a reader that
// comes too late.
//
// Cost: a call of the system, some 0.1 us a page, and a page fault for each
// page that is written again.
//
// Threads: any; nobody may use the elements meanwhile.

#ifndef NN_ARENA_RELEASED_PAGES_H_
#define NN_ARENA_RELEASED_PAGES_H_

#include "nn/tensor/tensor.h"

namespace troupe::nn {

// Whether released elements read as NaN instead of giving memory back.
#if !defined(NDEBUG) || defined(__SANITIZE_ADDRESS__) || \
    defined(__SANITIZE_THREAD__)
inline constexpr bool kPoisonsReleased = true;
#else
inline constexpr bool kPoisonsReleased = false;
#endif

// `elems` is memory that the host may access, private to the process.
void ReleasePages(const Tensor& elems, bool poisons = kPoisonsReleased);

}  // namespace troupe::nn

#endif  // NN_ARENA_RELEASED_PAGES_H_
