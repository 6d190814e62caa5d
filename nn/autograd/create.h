// New tensors in a context: constants, sequences, random numbers.
//
//   Var mask = Tril(Ones(ctx, {T, T}));
//   Var angles = Arange(ctx, 0, 64) / 64;
//   ctx.set_random({/*seed=*/1});
//   Var noise = Randn(ctx, {20, 10});
//   Var more = RandLike(noise);
//   Var order = Randperm(ctx, 1000);           // i64[1000]
//
// Random numbers are keyed by seed, rank and step of the context
// (StepPosition), the path of the module, and the number of the call in the
// step: the same program has the same numbers on every machine and device, and
// two ranks have different ones. Context::BeginStep() gives the next step's.
// They are drawn on the host.
//
// Errors: base::StatusError. Random tensors need Context::set_random().

#ifndef NN_AUTOGRAD_CREATE_H_
#define NN_AUTOGRAD_CREATE_H_

#include <cstdint>

#include "nn/autograd/var.h"

namespace troupe::nn {

Var Full(Context& ctx, const Shape& shape, double value,
         DType dtype = DType::kF32);
Var Zeros(Context& ctx, const Shape& shape, DType dtype = DType::kF32);
Var Ones(Context& ctx, const Shape& shape, DType dtype = DType::kF32);
// With the context, shape and dtype of x.
Var FullLike(const Var& x, double value);
Var ZerosLike(const Var& x);
Var OnesLike(const Var& x);

// begin, begin + step, ... below end (above it, for a negative step); i64 or a
// floating dtype.
Var Arange(Context& ctx, double begin, double end, double step = 1,
           DType dtype = DType::kF32);
// `count` numbers from `first` to `last`, both included.
Var Linspace(Context& ctx, double first, double last, std::int64_t count,
             DType dtype = DType::kF32);
// [..., classes] of labels i64[...] (nn/ops/extremes.h).
Var OneHot(const Var& labels, std::int64_t classes, DType dtype = DType::kF32);

// Uniform in [0, 1), normal with mean 0 and variance 1, and integers in
// [low, high).
Var Rand(Context& ctx, const Shape& shape, DType dtype = DType::kF32);
Var Randn(Context& ctx, const Shape& shape, DType dtype = DType::kF32);
Var Randint(Context& ctx, std::int64_t low, std::int64_t high,
            const Shape& shape);
// The numbers 0 to count - 1 in random order.
Var Randperm(Context& ctx, std::int64_t count);
Var RandLike(const Var& x);
Var RandnLike(const Var& x);

}  // namespace troupe::nn

#endif  // NN_AUTOGRAD_CREATE_H_
