// Includes a header that its target does not depend on, on purpose.

#ifndef TESTS_STYLE_PLANTED_UNDECLARED_INCLUDE_H_
#define TESTS_STYLE_PLANTED_UNDECLARED_INCLUDE_H_

#include "tests/base/seeds.h"

#endif  // TESTS_STYLE_PLANTED_UNDECLARED_INCLUDE_H_
