// Declares names that the usage comments in nn/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_NN_H_
#define TESTS_USAGE_WORDS_NN_H_

#include "nn/autograd/context.h"

#endif  // TESTS_USAGE_WORDS_NN_H_
