// Trials of the memory of payloads that MPI reads from tensors: when it is
// given back, and when a receiver may use what it has got.
//
//   EXPECT_EQ(WhenItIsReleased(), "");
//
// Each returns what is wrong; empty: nothing, or there is no Open MPI.

#ifndef TESTS_COMM_LINKS_MPI_LIFETIME_H_
#define TESTS_COMM_LINKS_MPI_LIFETIME_H_

#include <string>

namespace troupe::comm {

// Whether there is an Open MPI, and MPI can begin.
bool HasMpi();

// A payload is released after MPI has read it, and used after that.
std::string WhenItIsReleased();
// Frames behind a payload that is being read are released after it.
std::string WhetherFramesKeepTheirOrder();
// A link ends while its peer reads nothing: when memory is given back, MPI is
// not used any more.
std::string WhatAnEndLeaves();
// The sender gives up a payload, before or after it has been received.
std::string WhatARevokedPayloadIs(bool received);

}  // namespace troupe::comm

#endif  // TESTS_COMM_LINKS_MPI_LIFETIME_H_
