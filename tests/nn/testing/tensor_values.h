// Tensors from lists of doubles and back, and differences of lists.
//
//   Tensor x = MakeTensor({2, 3}, DType::kBF16, NormalDraws("x", 6), memory);
//   EXPECT_TRUE(Near(ValuesOf(y), want, /*tolerance=*/1e-6)) << "y";
//
// For memory that the host can read.

#ifndef TESTS_NN_TESTING_TENSOR_VALUES_H_
#define TESTS_NN_TESTING_TENSOR_VALUES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn {

// Returns `values` rounded once to `dtype`; integers must fit.
Tensor MakeTensor(const Shape& shape, DType dtype,
                  const std::vector<double>& values, Allocator& allocator);

std::vector<double> ValuesOf(const Tensor& tensor);

// Returns `count` draws of mean 0 and variance 1, the same for the same `name`.
std::vector<double> NormalDraws(absl::string_view name, std::int64_t count);

// Holds ||got - want|| / ||want|| and max|got - want| / max|want|. Elements
// that are equal, or both NaN, differ by 0; any other pair with a NaN or an
// infinity differs by infinity. If `want` is all zero, the differences are
// absolute.
struct Difference {
  double norm = 0;
  double max = 0;
};
Difference Compare(const std::vector<double>& got,
                   const std::vector<double>& want);

// Expects equal sizes, and both differences at most `tolerance`.
::testing::AssertionResult Near(const std::vector<double>& got,
                                const std::vector<double>& want,
                                double tolerance);

// Returns the tolerance of an element type, for the largest element and the
// norm.
double OpTolerance(DType dtype);

}  // namespace troupe::nn

#endif  // TESTS_NN_TESTING_TENSOR_VALUES_H_
