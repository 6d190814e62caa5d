// Declares names that the usage comments in base/tls/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_BASE_TLS_H_
#define TESTS_USAGE_WORDS_BASE_TLS_H_

#include "absl/time/clock.h"
#include "base/check.h"
#include "base/tls/certificates.h"

namespace troupe::base::tls::usage::certificates_h {
void Listen(const CertificateFiles& files);
}

#endif  // TESTS_USAGE_WORDS_BASE_TLS_H_
