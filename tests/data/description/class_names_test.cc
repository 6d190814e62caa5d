#include "data/description/class_names.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace troupe::data {
namespace {

TEST(ClassNamesTest, AreComparedByName) {
  const std::string pets = ClassNames({"cat", "dog"});
  EXPECT_EQ(pets, "cat/dog");
  EXPECT_TRUE(CompareClasses(pets, pets).ok());
  EXPECT_EQ(CompareClasses(pets, "cat/hound").message(),
            "class 1 was \"dog\" and is \"hound\" now, of 2 and 2 classes; "
            "name the folders as they were, or start anew");
  EXPECT_EQ(CompareClasses(pets, "cat/cow/dog").message(),
            "class 1 was \"dog\" and is \"cow\" now, of 2 and 3 classes; name "
            "the folders as they were, or start anew");
  EXPECT_EQ(CompareClasses(pets, "cat").message(),
            "class 1 was \"dog\" and is none now, of 2 and 1 classes; name the "
            "folders as they were, or start anew");
  EXPECT_EQ(CompareClasses(pets, "dog/cat").message(),
            "class 0 was \"cat\" and is \"dog\" now, of 2 and 2 classes, which "
            "have the same names in another order; give them in the order of "
            "the run, or start anew");
  const std::string hashed =
      ClassNames({std::string(kClassNamesBytesMax, 'x'), "y"});
  EXPECT_LT(hashed.size(), 99u);
  EXPECT_TRUE(NamesOfClasses(hashed).empty());
  EXPECT_EQ(NamesOfClasses(pets), (std::vector<std::string>{"cat", "dog"}));
}

}  // namespace
}  // namespace troupe::data
