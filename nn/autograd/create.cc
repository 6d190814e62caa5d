#include "nn/autograd/create.h"

#include <cmath>
#include <numeric>
#include <optional>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/kernels/device_queues.h"
#include "nn/ops/extremes.h"
#include "nn/random/philox.h"

namespace troupe::nn {
namespace {

// Throws.
template <typename... Args>
Var Refused(Context& ctx, const Args&... parts) {
  return Var(ctx, ctx.Fail(absl::InvalidArgumentError(absl::StrCat(parts...))));
}

// Fills host memory of a floating dtype, or i64, with next() for each element.
template <typename Next>
absl::Status FillOnHost(const Tensor& host, Next next) {
  const auto fill = [&](auto type) {
    using T = decltype(type);
    for (T& element : host.span<T>()) {
      if constexpr (std::is_integral_v<T>) {
        element = static_cast<T>(next());
      } else {
        element = FromF64<T>(next());
      }
    }
    return absl::OkStatus();
  };
  switch (host.dtype()) {
    case DType::kF32:
      return fill(float{});
    case DType::kF64:
      return fill(double{});
    case DType::kBF16:
      return fill(bf16{});
    case DType::kF16:
      return fill(f16{});
    case DType::kI64:
      return fill(std::int64_t{});
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("numbers are made in i64 and floating dtypes, not in ",
                       DTypeName(host.dtype()), "; convert them afterwards"));
  }
}

// Returns a new tensor on the context's device, filled in host memory by
// fill(host), which returns a Status.
template <typename Fill>
Var MadeOnHost(Context& ctx, const char* name, const Shape& shape, DType dtype,
               Fill fill) {
  Tensor made = ctx.Empty(name, shape, dtype);
  ctx.Note(name, made, 0);
  if (!ctx.computes()) return Var(ctx, made);
  Kernels& kernels = ctx.kernels();
  const bool apart = !made.host_accessible();
  absl::StatusOr<Tensor> host = made;
  if (apart) host = Tensor::Create(shape, dtype, HostAllocator(kernels));
  absl::Status status = host.ok() ? fill(*host) : host.status();
  if (status.ok() && apart) {
    CopyBytes(kernels, Queue::kCompute, *host, made);
  }
  return Var(ctx, status.ok() ? made : ctx.Fail(status));
}

// Calls fill(stream, host) with the draws of this call.
template <typename Fill>
Var Drawn(Context& ctx, const char* name, const Shape& shape, DType dtype,
          Fill fill) {
  return MadeOnHost(
      ctx, name, shape, dtype, [&](const Tensor& host) -> absl::Status {
        const std::optional<SampleDraws> draws = ctx.Random(Purpose::kTensor);
        if (!draws) return ctx.status();
        RandomPosition position = draws->first;
        position.position = static_cast<std::uint32_t>(ctx.random()->rank);
        RandomStream stream(draws->key, position);
        return fill(stream, host);
      });
}

}  // namespace

Var Full(Context& ctx, const Shape& shape, double value, DType dtype) {
  Tensor made = ctx.Empty("full", shape, dtype);
  ctx.Note("full", made, 0);
  if (!ctx.computes()) return Var(ctx, made);
  const absl::Status status = ctx.kernels().Fill(value, made);
  return Var(ctx, status.ok() ? made : ctx.Fail(status));
}

Var Zeros(Context& ctx, const Shape& shape, DType dtype) {
  return Full(ctx, shape, 0, dtype);
}

Var Ones(Context& ctx, const Shape& shape, DType dtype) {
  return Full(ctx, shape, 1, dtype);
}

Var FullLike(const Var& x, double value) {
  return Full(x.context(), x.shape(), value, x.dtype());
}
Var ZerosLike(const Var& x) { return FullLike(x, 0); }
Var OnesLike(const Var& x) { return FullLike(x, 1); }

Var Arange(Context& ctx, double begin, double end, double step, DType dtype) {
  const double count = std::ceil((end - begin) / step);
  if (step == 0 || !(count <= static_cast<double>(Shape::kMaxNumel))) {
    return Refused(ctx, "arange takes numbers and a step that is not 0, got ",
                   begin, ", ", end, " and ", step);
  }
  const auto n = static_cast<std::int64_t>(std::fmax(count, 0));
  return MadeOnHost(ctx, "arange", {n}, dtype, [&](const Tensor& host) {
    std::int64_t i = 0;
    return FillOnHost(host, [&] { return begin + step * (i++); });
  });
}

Var Linspace(Context& ctx, double first, double last, std::int64_t count,
             DType dtype) {
  if (count < 0 || count > Shape::kMaxNumel) {
    return Refused(ctx, "linspace takes a count of numbers, got ", count);
  }
  // From both ends, so that `last` is exact.
  const double step = count < 2 ? 0 : (last - first) / (count - 1);
  return MadeOnHost(ctx, "linspace", {count}, dtype, [&](const Tensor& host) {
    std::int64_t i = 0;
    return FillOnHost(host, [&] {
      const std::int64_t at = i++;
      return at < count / 2 || count == 1 ? first + step * at
                                          : last - step * (count - 1 - at);
    });
  });
}

Var OneHot(const Var& labels, std::int64_t classes, DType dtype) {
  return labels.Apply(ops::OneHot, classes, dtype);
}

Var Rand(Context& ctx, const Shape& shape, DType dtype) {
  return Drawn(ctx, "rand", shape, dtype,
               [&](RandomStream& stream, const Tensor& host) {
                 // 8 bits of a draw fit into bf16, 11 into f16: rounding up
                 // would give 1.
                 const int bits = dtype == DType::kBF16  ? 8
                                  : dtype == DType::kF16 ? 11
                                                         : 24;
                 return FillOnHost(host, [&] {
                   return std::ldexp(stream.Bits32() >> (32 - bits), -bits);
                 });
               });
}

Var Randn(Context& ctx, const Shape& shape, DType dtype) {
  return Drawn(ctx, "randn", shape, dtype,
               [&](RandomStream& stream, const Tensor& host) {
                 return FillOnHost(host, [&] { return stream.Normal(); });
               });
}

Var Randint(Context& ctx, std::int64_t low, std::int64_t high,
            const Shape& shape) {
  if (low >= high) {
    return Refused(ctx, "randint takes low < high, got ", low, " and ", high);
  }
  const std::uint64_t bound =
      static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  return Drawn(ctx, "randint", shape, DType::kI64,
               [&](RandomStream& stream, const Tensor& host) {
                 for (std::int64_t& value : host.span<std::int64_t>()) {
                   value = static_cast<std::int64_t>(
                       static_cast<std::uint64_t>(low) + stream.Below(bound));
                 }
                 return absl::OkStatus();
               });
}

Var Randperm(Context& ctx, std::int64_t count) {
  if (count < 0 || count > Shape::kMaxNumel) {
    return Refused(ctx, "randperm takes a count of numbers, got ", count);
  }
  return Drawn(ctx, "randperm", {count}, DType::kI64,
               [&](RandomStream& stream, const Tensor& host) {
                 const absl::Span<std::int64_t> order =
                     host.span<std::int64_t>();
                 std::iota(order.begin(), order.end(), 0);
                 stream.Shuffle(order.begin(), order.end());
                 return absl::OkStatus();
               });
}

Var RandLike(const Var& x) { return Rand(x.context(), x.shape(), x.dtype()); }
Var RandnLike(const Var& x) { return Randn(x.context(), x.shape(), x.dtype()); }

}  // namespace troupe::nn
