// An authority and a certificate that it signed, in files of a folder.
//
//   const TlsFiles files = MakeTestCertificates(testing::TempDir(), "left");

#ifndef TESTS_COMM_LINKS_TEST_CERTIFICATES_H_
#define TESTS_COMM_LINKS_TEST_CERTIFICATES_H_

#include <string>

#include "comm/tcp/tls_stream.h"

namespace troupe::comm {

// Another authority at each call; `name` is a part of the files' names.
TlsFiles MakeTestCertificates(const std::string& folder,
                              const std::string& name);

}  // namespace troupe::comm

#endif  // TESTS_COMM_LINKS_TEST_CERTIFICATES_H_
