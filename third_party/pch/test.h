// What most tests include besides std.h. Compiled once, by
// precompiled_header().
//
// A test includes what it uses all the same (tests/style/includes.py).

#ifndef THIRD_PARTY_PCH_TEST_H_
#define THIRD_PARTY_PCH_TEST_H_

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "third_party/pch/std.h"

#endif  // THIRD_PARTY_PCH_TEST_H_
