#include "base/field_error.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace troupe::base {

struct Wheel {
  double radius = 1;
  int spokes = 12;
};

class Cart {
 public:
  struct Options {
    Wheel wheel;
    int wheels = 2;
  };
};

namespace {

struct BrakePart {
  static constexpr char kFieldsOf[] = "Carriage";
  double force = 1;
};

struct SeatPart {
  static constexpr char kFieldsOf[] = "Carriage";
  int seats = 2;
};

struct Carriage : BrakePart, SeatPart {
  int horses = 4;
};

struct Hidden {
  std::vector<int> cuts;
};

using Names = std::vector<std::string>;

TEST(FieldError, NamesStructAndField) {
  EXPECT_EQ(FieldName<&Wheel::radius>(), "Wheel.radius");
  EXPECT_EQ(FieldName<&Cart::Options::wheels>(), "Cart.Options.wheels");
  EXPECT_EQ(FieldName<&Hidden::cuts>(), "Hidden.cuts");
}

TEST(FieldError, NamesTheStructThatAPartBelongsTo) {
  EXPECT_EQ(FieldName<&Carriage::force>(), "Carriage.force");
  EXPECT_EQ(FieldName<&SeatPart::seats>(), "Carriage.seats");
  EXPECT_EQ(FieldName<&Carriage::horses>(), "Carriage.horses");
  EXPECT_EQ(FieldsOf(FieldError<&Carriage::seats>("too many")),
            Names{"Carriage.seats"});
}

TEST(FieldError, CarriesItsFields) {
  const absl::Status status =
      FieldError<&Wheel::spokes, &Wheel::radius>("too many for the radius");
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(), "too many for the radius");
  EXPECT_EQ(FieldsOf(status), (Names{"Wheel.spokes", "Wheel.radius"}));
}

TEST(FieldError, OtherErrorsBlameNone) {
  EXPECT_EQ(FieldsOf(absl::NotFoundError("no wheel")), Names{});
  EXPECT_EQ(FieldsOf(absl::OkStatus()), Names{});
}

TEST(FieldError, IsAddedToAnErrorOnce) {
  const absl::Status inner =
      WithFields<&Wheel::radius>(absl::NotFoundError("no wheel"));
  EXPECT_TRUE(absl::IsNotFound(inner));
  const absl::Status outer = WithFields<&Cart::Options::wheels>(inner);
  EXPECT_EQ(FieldsOf(outer), Names{"Wheel.radius"});
  EXPECT_TRUE(WithFields<&Wheel::radius>(absl::OkStatus()).ok());
}

TEST(FieldError, KeepsItsFieldsUnderAnotherMessage) {
  const absl::Status inner = FieldError<&Wheel::spokes>("too many");
  EXPECT_EQ(WithMessage(inner, "left wheel: too many"),
            FieldError<&Wheel::spokes>("left wheel: too many"));
  EXPECT_EQ(WithMessage(absl::NotFoundError("gone"), "the cart is gone"),
            absl::NotFoundError("the cart is gone"));
}

}  // namespace
}  // namespace troupe::base
