// The three files that a node needs for mutual TLS (certificates.h).
//
//   const CertificateFiles files = {"certs/authority.pem", "certs/node.pem",
//                                   "certs/node.key"};

#ifndef BASE_TLS_CERTIFICATE_FILES_H_
#define BASE_TLS_CERTIFICATE_FILES_H_

#include <string>

namespace troupe::base::tls {

struct CertificateFiles {
  std::string authority;    // authority whose certificates it accepts
  std::string certificate;  // its own certificate
  std::string key;          // key of its own certificate
};

}  // namespace troupe::base::tls

#endif  // BASE_TLS_CERTIFICATE_FILES_H_
