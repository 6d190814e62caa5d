// The headers that most tests include besides those of std.h.
// precompiled_header() compiles them once.
//
// A test still includes everything that it uses (tests/style/includes.py).

#ifndef THIRD_PARTY_PCH_TEST_H_
#define THIRD_PARTY_PCH_TEST_H_

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/pch/std.h"

#endif  // THIRD_PARTY_PCH_TEST_H_
