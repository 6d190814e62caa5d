// Makes a certificate authority and a certificate signed by it, as files.
//
//   const TlsFiles files = MakeTestCertificates(testing::TempDir(), "left");

#ifndef TESTS_COMM_LINKS_TEST_CERTIFICATES_H_
#define TESTS_COMM_LINKS_TEST_CERTIFICATES_H_

#include <string>

#include "comm/tcp/tls_stream.h"

namespace troupe::comm {

// Makes a new authority at each call; `name` is part of the file names.
TlsFiles MakeTestCertificates(const std::string& folder,
                              const std::string& name);

}  // namespace troupe::comm

#endif  // TESTS_COMM_LINKS_TEST_CERTIFICATES_H_
