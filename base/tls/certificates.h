// Certificates for mutual TLS: an authority, and certificates that it signs. A
// node accepts a peer that shows a certificate of the same authority.
//
//   CertificateOptions options;
//   options.now = absl::Now();
//   TROUPE_ASSIGN_OR_RETURN(Authority authority, Authority::Make(options));
//   TROUPE_RETURN_IF_ERROR(MakePrivateFolder("certs"));
//   TROUPE_RETURN_IF_ERROR(authority.WriteCertificate("certs"));
//   TROUPE_RETURN_IF_ERROR(
//       authority.WriteNode("certs", {"node1", "10.0.0.7"}, options));
//   Listen(CertificatesIn("certs"));
//
// Keys are P-256, serial numbers random, files PEM; only their owner can read
// files with keys (mode 0600). No file is ever overwritten. A job of a single
// run need not write its authority's key to disk: without the key, nobody can
// sign for it. With WriteKey() more nodes can be added later.
//
// Every error names the file and its cause. Threads: calls are independent.
// Cost: below a millisecond each.

#ifndef BASE_TLS_CERTIFICATES_H_
#define BASE_TLS_CERTIFICATES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/tls/certificate_files.h"
#include "base/tls/openssl.h"

namespace troupe::base::tls {

// Returns authority.pem, node.pem and node.key of a folder.
CertificateFiles CertificatesIn(const std::string& folder);

// Returns authority.key of a folder.
std::string AuthorityKeyIn(const std::string& folder);

struct CertificateOptions {
  absl::Time now;
  // Time from `now` to expiry. Valid from an hour before `now`, since clocks
  // differ.
  absl::Duration validity = absl::Hours(7 * 24);
};

struct NodePem {
  std::string certificate;
  std::string key;
};

class Authority {
 public:
  // Makes a new authority; writes nothing to disk.
  static absl::StatusOr<Authority> Make(const CertificateOptions& options);
  // Loads the authority that WriteCertificate() and WriteKey() wrote to a
  // folder.
  static absl::StatusOr<Authority> Load(const std::string& folder);

  // Writes folder/authority.pem; every node needs a copy.
  absl::Status WriteCertificate(const std::string& folder) const;
  // Writes folder/authority.key; with it one can admit any node.
  absl::Status WriteKey(const std::string& folder) const;

  absl::StatusOr<std::string> CertificatePem() const;

  // Makes a certificate and key for a node that is reached as `hosts`: names or
  // IP addresses, at least one, the first of which becomes its name. Valid no
  // longer than the authority is.
  //   kInvalidArgument: no host, or one that is not a valid name.
  absl::StatusOr<NodePem> SignNode(const std::vector<std::string>& hosts,
                                   const CertificateOptions& options) const;
  // Writes the same to folder/node.pem and folder/node.key; both files or none.
  absl::Status WriteNode(const std::string& folder,
                         const std::vector<std::string>& hosts,
                         const CertificateOptions& options) const;

 private:
  Authority(Key key, X509Ptr certificate);

  Key key_;
  X509Ptr certificate_;
};

// Makes a file in memory with that text, which is never on disk and ends when
// the last process closes it. A process that inherits it open reads it as
// /proc/self/fd/<number>. The caller closes it.
absl::StatusOr<int> OpenInMemory(const std::string& name,
                                 absl::string_view text);

// Returns kInvalidArgument if `host` is not the name or address of a host.
absl::Status CheckHost(const std::string& host);

// Makes a folder that only its owner can enter (mode 0700), and its parents
// with the default mode. An existing folder stays as it is.
absl::Status MakePrivateFolder(const std::string& path);

}  // namespace troupe::base::tls

#endif  // BASE_TLS_CERTIFICATES_H_
