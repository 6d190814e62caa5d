// Reads certificates and keys, and reports what is wrong with them before a
// handshake fails without an explanation.
//
//   const CertificateFiles files = CertificatesIn("certs");
//   TROUPE_RETURN_IF_ERROR(CheckCertificates(files, absl::Now()));
//   TROUPE_ASSIGN_OR_RETURN(std::string name, NameOf(files.certificate));

#ifndef BASE_TLS_CERTIFICATE_CHECK_H_
#define BASE_TLS_CERTIFICATE_CHECK_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/tls/certificates.h"
#include "base/tls/openssl.h"

namespace troupe::base::tls {

// Returns ok if a peer with the same authority will accept these files at
// `now`. Otherwise the error names the file, what is wrong, and a remedy:
//   kNotFound, kPermissionDenied, ...: it cannot be read.
//   kInvalidArgument: it is no certificate or key; the key does not belong to
//     the certificate; another authority has signed it.
//   kFailedPrecondition: it is not valid yet, or has expired; others than its
//     owner may read the key.
absl::Status CheckCertificates(const CertificateFiles& files, absl::Time now);

// Returns the first host that the certificate in a file was made for, cut to 64
// bytes.
absl::StatusOr<std::string> NameOf(const std::string& path);

// Returns all certificates of a file, at least one: the node's own first, then
// those between it and the authority.
absl::StatusOr<std::vector<X509Ptr>> ReadCertificates(const std::string& path);

// Reads a key that has no passphrase.
absl::StatusOr<Key> ReadPrivateKey(const std::string& path);

// Returns kInvalidArgument if `key`, read from `key_path`, does not belong to
// `certificate`.
absl::Status CheckKeyOf(X509* certificate, const std::string& path,
                        EVP_PKEY* key, const std::string& key_path);

}  // namespace troupe::base::tls

#endif  // BASE_TLS_CERTIFICATE_CHECK_H_
