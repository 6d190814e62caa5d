// Declares names that the usage comments in base/simd/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_BASE_SIMD_H_
#define TESTS_USAGE_WORDS_BASE_SIMD_H_

#include <cstdint>

#include "base/simd/f32.h"
#include "base/simd/vector.h"
#include "base/simd/words.h"

namespace troupe::base::simd::usage {

namespace f32_h {
extern int i, n;
extern const float* x;
extern const Vec a;
}  // namespace f32_h

namespace f64_h {
extern const int i;
extern const float* x;
extern double* sums;
}  // namespace f64_h

namespace half_h {
extern const std::uint16_t* from;
extern std::uint16_t* to;
}  // namespace half_h

namespace vector_h {
extern const double* from;
extern double* to;
extern const Vector<double> w;
}  // namespace vector_h

namespace words_h {
extern const Words a;
}

}  // namespace troupe::base::simd::usage

#endif  // TESTS_USAGE_WORDS_BASE_SIMD_H_
