// The vectors of base/simd, under the names used in the loops.
//
//   Vec sum = Fma(LoadSome(x + i, First(n - i)), a, Zero());

#ifndef NN_KERNELS_CPU_SIMD_H_
#define NN_KERNELS_CPU_SIMD_H_

#include "base/simd/f32.h"
#include "base/simd/f64.h"
#include "base/simd/half.h"

namespace troupe::nn::cpu {
namespace {

using base::simd::BitCast;
using base::simd::CeilDiv;
using base::simd::Choose;
using base::simd::Either;
using base::simd::First;
using base::simd::Fma;
using base::simd::FmaWide;
using base::simd::Greater;
using base::simd::GreaterOrNan;
using base::simd::Index;
using base::simd::IsNan;
using base::simd::KeepSome;
using base::simd::kLanes;
using base::simd::kRegisters;
using base::simd::Load;
using base::simd::LoadBF16;
using base::simd::LoadBits;
using base::simd::LoadF16;
using base::simd::LoadSome;
using base::simd::LoadSomeBits;
using base::simd::LoadWide;
using base::simd::Mask;
using base::simd::Max;
using base::simd::MaxLanes;
using base::simd::MaxOrSecond;
using base::simd::Min;
using base::simd::Minus;
using base::simd::Over;
using base::simd::Plus;
using base::simd::PlusWide;
using base::simd::PowerOfTwo;
using base::simd::SameBits;
using base::simd::Set;
using base::simd::SetBits;
using base::simd::SquareRoot;
using base::simd::SquareSum;
using base::simd::Store;
using base::simd::StoreBF16;
using base::simd::StoreF16;
using base::simd::StoreSome;
using base::simd::StoreSomeBits;
using base::simd::StoreWide;
using base::simd::SumLanes;
using base::simd::Times;
using base::simd::Truth;
using base::simd::Vec;
using base::simd::Vector;
using base::simd::WherePositiveOrNan;
using base::simd::Wide;
using base::simd::Widen;
using base::simd::Zero;
#if defined(__AVX512F__)
using base::simd::AddBits;
using base::simd::PickFromTwo;
#endif

}  // namespace
}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_SIMD_H_
