// Reads certificates and keys, and says what is wrong with them before a
// handshake fails without words.
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

// Ok where a peer with the same authority will accept these files at `now`.
// Otherwise the error names the file, what is wrong, and what to do:
//   kNotFound, kPermissionDenied, ...: it cannot be read.
//   kInvalidArgument: it is no certificate or key; the key is not that of the
//     certificate; another authority has signed it.
//   kFailedPrecondition: it is not valid yet, or any more; others than its
//     owner may read the key.
absl::Status CheckCertificates(const CertificateFiles& files, absl::Time now);

// The first host that the certificate in a file was made for.
absl::StatusOr<std::string> NameOf(const std::string& path);

// All certificates of a file, at least one: its own first, then those between
// it and the authority.
absl::StatusOr<std::vector<X509Ptr>> ReadCertificates(const std::string& path);

// A key without passphrase.
absl::StatusOr<Key> ReadPrivateKey(const std::string& path);

// kInvalidArgument where `key`, read from `key_path`, is not that of
// `certificate`.
absl::Status CheckKeyOf(X509* certificate, const std::string& path,
                        EVP_PKEY* key, const std::string& key_path);

}  // namespace troupe::base::tls

#endif  // BASE_TLS_CERTIFICATE_CHECK_H_
