#include <algorithm>
#include <cstdint>

#include "nn/kernels/batch_norm_stats.h"
#include "nn/kernels/cuda/channel_grid.h"
#include "nn/kernels/cuda/kernel_parts/cuda_ops.h"
#include "nn/kernels/cuda/kernel_parts/dispatch.h"
#include "nn/kernels/cuda/kernel_parts/elements.h"
#include "nn/kernels/cuda/kernel_parts/reduce.h"

// Letters: N samples, S places, C channels, G groups of K channels. A warp
// computes a group, or a block if groups are large.

namespace troupe::nn::cuda {
namespace {

constexpr int kNormThreads = 256;
// A group with more elements than this is computed by a block.
constexpr std::int64_t kWarpElementsMax = 2048;

struct Groups {
  std::int64_t S, C, G, K;
  std::int64_t count;  // N G
  bool centered;
  double eps;

  // Return the first channel of group `g`, and the group's offset in x.
  __device__ std::int64_t channel(std::int64_t g) const { return g % G * K; }
  __device__ std::int64_t begin(std::int64_t g) const {
    return g / G * S * C + channel(g);
  }
};

Groups GroupsOf(const NormRule& rule, In x) {
  const std::int64_t C = x.dim(2);
  return {x.dim(1),
          C,
          rule.groups,
          C / rule.groups,
          x.dim(0) * rule.groups,
          rule.centered,
          rule.eps};
}

// Calls fn(i, k) for the thread's elements of a group, kVector at a time. i is
// the offset from the group's first element, k the channel within the group.
template <int kVector, int kGroupThreads, typename Fn>
__device__ __forceinline__ void ForEachOfGroup(const Groups& groups, int thread,
                                               Fn fn) {
  constexpr int kStep = kGroupThreads * kVector;
  const std::int64_t first = static_cast<std::int64_t>(thread) * kVector;
  const std::int64_t step_places = kStep / groups.K, step = kStep % groups.K;
  std::int64_t place = first / groups.K, k = first % groups.K;
  while (place < groups.S) {
    fn(place * groups.C + k, k);
    place += step_places;
    k += step;
    if (k >= groups.K) {
      k -= groups.K;
      ++place;
    }
  }
}

struct TwoSums {
  double a, b;
};
struct AddTwo {
  __device__ __forceinline__ TwoSums operator()(const TwoSums& s,
                                                const TwoSums& t) const {
    return {s.a + t.a, s.b + t.b};
  }
};

template <int kGroupThreads>
__device__ __forceinline__ TwoSums MergeGroup(const TwoSums& sums) {
  if constexpr (kGroupThreads == kWarpThreads) {
    return MergeWarp(sums, AddTwo());
  } else {
    return MergeBlock<kGroupThreads>(sums, AddTwo());
  }
}

// Loads channels [c, c + kVector) of a parameter; if it is null, returns
// `otherwise` for each.
template <int kVector, typename T>
__device__ __forceinline__ Numbers<float, kVector> LoadOr(const T* from,
                                                          std::int64_t c,
                                                          float otherwise) {
  if (from != nullptr) return Load<kVector>(from + c);
  Numbers<float, kVector> numbers;
  for (float& number : numbers.at) number = otherwise;
  return numbers;
}

// Rounds numbers to T and back.
template <typename T, int kVector>
__device__ __forceinline__ Numbers<float, kVector> Rounded(
    Numbers<float, kVector> numbers) {
  for (float& number : numbers.at) {
    T element;
    Round(number, element);
    number = Widen(element);
  }
  return numbers;
}

// Returns a + b rounded to T; both have the precision of T.
template <typename T, int kVector>
__device__ __forceinline__ Numbers<float, kVector> RoundedSum(
    Numbers<float, kVector> a, const Numbers<float, kVector>& b) {
  for (int j = 0; j < kVector; ++j) a.at[j] += b.at[j];
  return Rounded<T>(a);
}

template <typename T>
struct ForwardBody {
  Groups groups;
  const T* x;       // with a branch, sum = x + branch is normalised instead
  const T* branch;  // may be null
  const T* w;       // may be null
  const T* b;       // may be null
  T* sum;
  T* y;
  double* stats;

  template <int kVector>
  __device__ __forceinline__ Numbers<float, kVector> First(
      std::int64_t i) const {
    Numbers<float, kVector> v = Load<kVector>(x + i);
    if (branch == nullptr) return v;
    v = RoundedSum<T>(v, Load<kVector>(branch + i));
    Store(v, sum + i);
    return v;
  }

  template <int kVector, int kGroupThreads>
  __device__ void Group(std::int64_t g, int thread) const {
    const std::int64_t begin = groups.begin(g), channel = groups.channel(g);
    TwoSums sums = {0, 0};
    ForEachOfGroup<kVector, kGroupThreads>(
        groups, thread, [&](std::int64_t i, std::int64_t) {
          const Numbers<float, kVector> v = First<kVector>(begin + i);
          for (float value : v.at) {
            const double wide = value;
            sums.a += wide;
            sums.b += wide * wide;
          }
        });
    sums = MergeGroup<kGroupThreads>(sums);
    const double count = static_cast<double>(groups.S * groups.K);
    const BatchMoments of_group =
        nn::MomentsOf(groups.centered ? sums.a : 0, sums.b, count);
    const double mean = of_group.mean;
    const double rstd = RstdOf(of_group.var, groups.eps);
    if (thread == 0) {
      stats[2 * g] = mean;
      stats[2 * g + 1] = rstd;
    }
    const float m = static_cast<float>(mean), r = static_cast<float>(rstd);
    const T* const from = branch == nullptr ? x : sum;
    ForEachOfGroup<kVector, kGroupThreads>(
        groups, thread, [&](std::int64_t i, std::int64_t k) {
          Numbers<float, kVector> v = Load<kVector>(from + begin + i);
          const auto weight = LoadOr<kVector>(w, channel + k, 1);
          const auto bias = LoadOr<kVector>(b, channel + k, 0);
          for (int j = 0; j < kVector; ++j) {
            v.at[j] = fmaf((v.at[j] - m) * r, weight.at[j], bias.at[j]);
          }
          Store(v, y + begin + i);
        });
  }
};

template <typename T>
struct BackwardBody {
  Groups groups;
  const T* x;
  const double* stats;
  const T* w;  // may be null
  const T* dy;
  const T* base;  // added to dx; may be null
  T* dx;

  template <int kVector, int kGroupThreads>
  __device__ void Group(std::int64_t g, int thread) const {
    const std::int64_t begin = groups.begin(g), channel = groups.channel(g);
    const float m = static_cast<float>(stats[2 * g]);
    const float r = static_cast<float>(stats[2 * g + 1]);
    TwoSums sums = {0, 0};
    ForEachOfGroup<kVector, kGroupThreads>(
        groups, thread, [&](std::int64_t i, std::int64_t k) {
          const Numbers<float, kVector> v = Load<kVector>(x + begin + i);
          const Numbers<float, kVector> d = Load<kVector>(dy + begin + i);
          const auto weight = LoadOr<kVector>(w, channel + k, 1);
          for (int j = 0; j < kVector; ++j) {
            const double gradient = d.at[j] * weight.at[j];
            const double hat = (v.at[j] - m) * r;
            sums.a += gradient;
            sums.b += gradient * hat;
          }
        });
    sums = MergeGroup<kGroupThreads>(sums);
    const double count = static_cast<double>(groups.S * groups.K);
    const float mean = static_cast<float>(groups.centered ? sums.a / count : 0);
    const float slope = static_cast<float>(sums.b / count);
    ForEachOfGroup<kVector, kGroupThreads>(
        groups, thread, [&](std::int64_t i, std::int64_t k) {
          const Numbers<float, kVector> v = Load<kVector>(x + begin + i);
          Numbers<float, kVector> d = Load<kVector>(dy + begin + i);
          const auto weight = LoadOr<kVector>(w, channel + k, 1);
          for (int j = 0; j < kVector; ++j) {
            const float hat = (v.at[j] - m) * r;
            d.at[j] = r * (d.at[j] * weight.at[j] - mean - hat * slope);
          }
          if (base != nullptr) {
            d = RoundedSum<T>(Load<kVector>(base + begin + i), Rounded<T>(d));
          }
          Store(d, dx + begin + i);
        });
  }
};

template <int kVector, int kGroupThreads, typename Body>
__global__ void __launch_bounds__(kNormThreads) GroupsKernel(Body body) {
  constexpr int kGroupsAtOnce = kNormThreads / kGroupThreads;
  const int thread = static_cast<int>(threadIdx.x) % kGroupThreads;
  const int which = static_cast<int>(threadIdx.x) / kGroupThreads;
  for (std::int64_t g =
           static_cast<std::int64_t>(blockIdx.x) * kGroupsAtOnce + which;
       g < body.groups.count;
       g += static_cast<std::int64_t>(gridDim.x) * kGroupsAtOnce) {
    body.template Group<kVector, kGroupThreads>(g, thread);
  }
}

template <int kVector, typename Body>
absl::Status ForEachGroup(base::KernelName name, cudaStream_t stream,
                          bool vectors, const Body& body) {
  const Groups& groups = body.groups;
  if (groups.count == 0) return absl::OkStatus();
  const bool by_warp = groups.S * groups.K <= kWarpElementsMax;
  const std::int64_t at_once = by_warp ? kNormThreads / kWarpThreads : 1;
  base::LaunchShape shape;
  shape.grid = dim3(static_cast<unsigned>(
      std::min(kElementBlocksMax, (groups.count + at_once - 1) / at_once)));
  shape.block = dim3(kNormThreads);
  if (by_warp) {
    return base::Launch(name,
                        vectors ? GroupsKernel<kVector, kWarpThreads, Body>
                                : GroupsKernel<1, kWarpThreads, Body>,
                        shape, stream, body);
  }
  return base::Launch(name,
                      vectors ? GroupsKernel<kVector, kNormThreads, Body>
                              : GroupsKernel<1, kNormThreads, Body>,
                      shape, stream, body);
}

// Returns whether groups may be read kVectorOf<T> channels at a time.
template <typename T>
bool TakesVectors(const Groups& groups,
                  std::initializer_list<const void*> operands) {
  bool aligned = groups.K % kVectorOf<T> == 0;
  for (const void* address : operands) aligned = aligned && IsAligned(address);
  return aligned;
}

struct NormForward {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, const NormRule& rule, In x, In w,
                          In b, Tensor& y, Tensor& stats) {
    if (x.numel() == 0) return absl::OkStatus();
    return Launch<T>(
        "NormForward", cuda,
        {GroupsOf(rule, x), Data<T>(x), /*branch=*/nullptr, DataOrNull<T>(w),
         DataOrNull<T>(b), /*sum=*/nullptr, Data<T>(y), Data<double>(stats)});
  }

  template <typename T>
  static absl::Status Launch(base::KernelName name, const CudaOps& cuda,
                             const ForwardBody<T>& body) {
    return ForEachGroup<kVectorOf<T>>(
        name, cuda.stream,
        TakesVectors<T>(body.groups, {body.x, body.branch, body.w, body.b,
                                      body.sum, body.y}),
        body);
  }
};

struct AddNormForward {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, const NormRule& rule, In a, In b,
                          In w, In bias, Tensor& sum, Tensor& y,
                          Tensor& stats) {
    if (a.numel() == 0) return absl::OkStatus();
    return NormForward::Launch<T>(
        "AddNormForward", cuda,
        {GroupsOf(rule, a), Data<T>(a), Data<T>(b), DataOrNull<T>(w),
         DataOrNull<T>(bias), Data<T>(sum), Data<T>(y), Data<double>(stats)});
  }
};

struct NormBackwardInput {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, const NormRule& rule, In x,
                          In stats, In w, In dy, Tensor& dx) {
    if (x.numel() == 0) return absl::OkStatus();
    return Launch<T>(
        "NormBackwardInput", cuda,
        {GroupsOf(rule, x), Data<T>(x), Data<double>(stats), DataOrNull<T>(w),
         Data<T>(dy), /*base=*/nullptr, Data<T>(dx)});
  }

  template <typename T>
  static absl::Status Launch(base::KernelName name, const CudaOps& cuda,
                             const BackwardBody<T>& body) {
    return ForEachGroup<kVectorOf<T>>(
        name, cuda.stream,
        TakesVectors<T>(body.groups,
                        {body.x, body.w, body.dy, body.base, body.dx}),
        body);
  }
};

struct AddNormBackwardInput {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, const NormRule& rule, In x,
                          In stats, In w, In dy, In base, Tensor& dx) {
    if (x.numel() == 0) return absl::OkStatus();
    return NormBackwardInput::Launch<T>(
        "AddNormBackwardInput", cuda,
        {GroupsOf(rule, x), Data<T>(x), Data<double>(stats), DataOrNull<T>(w),
         Data<T>(dy), Data<T>(base), Data<T>(dx)});
  }
};

// Computes sums of dy and dy xhat over the rows [N S] of each channel.
template <typename T>
struct WeightSumsBody {
  Groups groups;
  const T* x;
  const double* stats;
  const T* dy;

  template <int kCount>
  struct Channels {
    std::int64_t group;  // group within its sample; has all kCount channels
  };
  template <int kCount>
  __device__ Channels<kCount> Prepare(std::int64_t c) const {
    return {c / groups.K};
  }
  template <int kCount>
  __device__ void Add(const Channels<kCount>& channels, std::int64_t r,
                      std::int64_t i, double* a, double* b) const {
    const double* of_group =
        stats + 2 * (r / groups.S * groups.G + channels.group);
    const float m = static_cast<float>(of_group[0]);
    const float rstd = static_cast<float>(of_group[1]);
    const Numbers<float, kCount> v = Load<kCount>(x + i);
    const Numbers<float, kCount> d = Load<kCount>(dy + i);
    for (int k = 0; k < kCount; ++k) {
      const double hat = (v.at[k] - m) * rstd;
      a[k] += static_cast<double>(d.at[k]);
      b[k] += d.at[k] * hat;
    }
  }
};

struct NormBackwardWeight {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, const NormRule& rule, In x,
                          In stats, In dy, bool accumulate, Tensor& dw,
                          Tensor& db) {
    const bool empty = x.numel() == 0;
    const WeightSumsBody<T> body{
        GroupsOf(rule, x), empty ? nullptr : Data<T>(x),
        empty ? nullptr : Data<double>(stats), empty ? nullptr : Data<T>(dy)};
    const std::int64_t C = x.dim(2);
    TROUPE_ASSIGN_OR_RETURN(
        const Tensor sums,
        Tensor::Create({2 * C + 1}, DType::kF64, *cuda.allocator));
    TROUPE_RETURN_IF_ERROR(SumChannels<kVectorOf<T>>(
        "NormWeightSums", cuda, x.dim(0) * x.dim(1), C,
        TakesVectors<T>(body.groups, {body.x, body.dy}), body,
        Data<double>(sums)));
    return WriteWeightGradients<T>("NormBackwardWeight", cuda.stream, C,
                                   Data<double>(sums), accumulate, dw, db);
  }
};

}  // namespace

template <>
void BindFamily(NormKernels& ops, CudaOps* state) {
  BindFloating<NormForward>(ops.NormForward, state);
  BindFloating<AddNormForward>(ops.AddNormForward, state);
  BindFloating<NormBackwardInput>(ops.NormBackwardInput, state);
  BindFloating<AddNormBackwardInput>(ops.AddNormBackwardInput, state);
  BindFloating<NormBackwardWeight>(ops.NormBackwardWeight, state);
}

}  // namespace troupe::nn::cuda
