#include "base/type_name.h"

#include <memory>

#include "gtest/gtest.h"

namespace troupe::base {
namespace {

struct Base {
  virtual ~Base() = default;
};
struct Derived : Base {};

TEST(TypeNameTest, IsThatOfTheObject) {
  EXPECT_EQ(TypeName(typeid(int)), "int");
  const std::unique_ptr<Base> object = std::make_unique<Derived>();
  const Base& base = *object;
  EXPECT_EQ(TypeName(typeid(base)),
            "troupe::base::(anonymous namespace)::Derived");
}

}  // namespace
}  // namespace troupe::base
