#include "nn/kernels/reference/element.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace troupe::nn::reference {
namespace {

// Values just beside the middle of two neighbours, closer than f32 can
// represent: rounding to f32 first would give the tie, and then the even
// neighbour.
template <typename T>
void CheckOneRounding() {
  for (std::uint16_t bits = 1; bits < 0x7b00; ++bits) {
    const double low = Load(T{bits});
    const double high = Load(T{static_cast<std::uint16_t>(bits + 1)});
    const double middle = (low + high) / 2;
    const double hair = middle * 0x1p-40;
    ASSERT_EQ(Store<T>(middle - hair).bits, bits);
    ASSERT_EQ(Store<T>(middle + hair).bits, bits + 1);
    ASSERT_EQ(Store<T>(middle).bits, bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(Store<T>(-middle - hair).bits, 0x8000 + bits + 1);
    ASSERT_EQ(Store<T>(low).bits, bits);
  }
}

TEST(Store, RoundsToF16Once) { CheckOneRounding<f16>(); }
TEST(Store, RoundsToBF16Once) { CheckOneRounding<bf16>(); }

TEST(Store, KeepsWhatIsNotANumberAndWhatIsTooLarge) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(std::isnan(Load(Store<f16>(std::nan("")))));
  EXPECT_TRUE(std::isnan(Load(Store<bf16>(std::nan("")))));
  EXPECT_EQ(Load(Store<f16>(-inf)), -inf);
  EXPECT_EQ(Load(Store<bf16>(1e300)), inf);
  EXPECT_EQ(Load(Store<f16>(-1e300)), -inf);
  EXPECT_EQ(Load(Store<f16>(1e-300)), 0.0);
  EXPECT_EQ(Load(Store<float>(0.1)), 0.1f);
}

TEST(ForFloating, RefusesIntegersByName) {
  const absl::Status status =
      ForFloating("Add", DType::kI64, [](auto) { return absl::OkStatus(); });
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(status.message(),
            "Add does not compute i64 on reference:0; convert it to "
            "another dtype");
}

}  // namespace
}  // namespace troupe::nn::reference
