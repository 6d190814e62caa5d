#include "base/tls/openssl.h"

#include <openssl/err.h>

#include <new>

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace troupe::base::tls {
namespace {

TEST(OpenSslTest, TheLastErrorIsTheReasonAndForgotten) {
  ERR_clear_error();
  ERR_raise(ERR_LIB_PEM, ERR_R_ASN1_LIB);
  ERR_raise(ERR_LIB_X509, ERR_R_INTERNAL_ERROR);
  EXPECT_EQ(OpenSslReason(), "internal error");
  EXPECT_EQ(ERR_peek_error(), 0u);
  EXPECT_EQ(OpenSslReason(), "no reason is known");
}

TEST(OpenSslTest, AnErrorSaysWhatItWasFor) {
  ERR_clear_error();
  ERR_raise(ERR_LIB_PEM, ERR_R_ASN1_LIB);
  EXPECT_EQ(OpenSslError("make a key"),
            absl::InternalError("cannot make a key: ASN1 lib"));
}

// A parser that runs out of memory adds an error of its own, as if the text
// were malformed.
TEST(OpenSslTest, NoMemoryIsNoErrorOfTheText) {
  ERR_clear_error();
  ERR_raise(ERR_LIB_ASN1, ERR_R_MALLOC_FAILURE);
  ERR_raise(ERR_LIB_PEM, ERR_R_ASN1_LIB);
  EXPECT_THROW(OpenSslReason(), std::bad_alloc);
  EXPECT_EQ(ERR_peek_error(), 0u);
}

}  // namespace
}  // namespace troupe::base::tls
