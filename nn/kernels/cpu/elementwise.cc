#include "nn/kernels/cpu/convert.h"
#include "nn/kernels/cpu/row_slices.h"
#include "nn/kernels/cpu/widening.h"

namespace troupe::nn::cpu {
namespace {

absl::Status ReluForward(CpuDevice& cpu, In x, Tensor& y) {
  return ForEachRowSlice(cpu, {x.numel()}, {&x}, {&y}, [&](const RowSlice& at) {
    cpu.loops().relu_forward(at.rows, at.in[0], at.out[0]);
  });
}

absl::Status ReluBackward(CpuDevice& cpu, In y, In dy, Tensor& dx) {
  return ForEachRowSlice(
      cpu, {y.numel()}, {&y, &dy}, {&dx}, [&](const RowSlice& at) {
        cpu.loops().relu_backward(at.rows, at.in[0], at.in[1], at.out[0]);
      });
}

absl::Status Scale(CpuDevice& cpu, In x, In factor, Tensor& y) {
  cpu.loops().scale(x.numel(), static_cast<float>(factor.data<double>()[0]),
                    x.data<float>(), y.data<float>());
  return absl::OkStatus();
}

absl::Status CountNonFinite(CpuDevice&, In x, Tensor& count) {
  const auto* bits = static_cast<const std::uint32_t*>(x.raw());
  constexpr std::uint32_t kExponent = 0x7f800000;
  std::int64_t found = 0;
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    found += (bits[i] & kExponent) == kExponent;
  }
  count.data<double>()[0] += static_cast<double>(found);
  return absl::OkStatus();
}

absl::Status Add(CpuDevice& cpu, In a, In b, Tensor& y) {
  return ForEachRowSlice(
      cpu, {a.numel()}, {&a, &b}, {&y}, [&](const RowSlice& at) {
        cpu.loops().add(at.rows, at.in[0], at.in[1], at.out[0]);
      });
}

absl::Status AddF64(CpuDevice&, In a, In b, Tensor& y) {
  const double *first = a.data<double>(), *second = b.data<double>();
  double* sum = y.data<double>();
  for (std::int64_t i = 0; i < a.numel(); ++i) sum[i] = first[i] + second[i];
  return absl::OkStatus();
}

absl::Status Fill(CpuDevice& cpu, double value, Tensor& y) {
  if (y.dtype() == DType::kF32) {
    cpu.loops().fill(y.numel(), static_cast<float>(value), y.data<float>());
    return absl::OkStatus();
  }
  if (!FillAny(value, y)) return DoesNotCompute("Fill", y.dtype(), y.device());
  return absl::OkStatus();
}

template <typename T>
void SetAll(const std::vector<double>& values, T* y) {
  std::transform(values.begin(), values.end(), y,
                 [](double value) { return static_cast<T>(value); });
}

absl::Status SetValues(CpuDevice&, const std::vector<double>& values,
                       Tensor& y) {
  if (y.dtype() == DType::kF32) {
    SetAll(values, y.data<float>());
  } else if (y.dtype() == DType::kF64) {
    SetAll(values, y.data<double>());
  } else {
    return DoesNotCompute("SetValues", y.dtype(), y.device());
  }
  return absl::OkStatus();
}

absl::Status Copy(CpuDevice& cpu, In x, Tensor& y) {
  if (!ConvertAny(cpu.loops(), x, y)) {
    const Tensor& refused = IsFloating(x.dtype()) ? y : x;
    return DoesNotCompute("Copy", refused.dtype(), y.device());
  }
  return absl::OkStatus();
}

}  // namespace

template <>
void BindFamily(CpuDevice& cpu, ElementwiseKernels& ops) {
  BindByRows<ReluForward>(cpu, ops.ReluForward);
  BindByRows<ReluBackward>(cpu, ops.ReluBackward);
  BindF32<Scale>(cpu, ops.Scale);
  BindF32<CountNonFinite>(cpu, ops.CountNonFinite);
  BindByRows<Add, AddF64>(cpu, ops.Add);
  ops.Fill.Bind<Fill>(&cpu);
  ops.SetValues.Bind<SetValues>(&cpu);
  ops.Copy.Bind<Copy>(&cpu);
}

}  // namespace troupe::nn::cpu
