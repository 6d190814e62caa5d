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
// Keys are P-256, serial numbers random, files PEM; those with keys can be read
// by their owner alone (mode 0600). No file is ever overwritten. A job of one
// run needs no key of its authority on the disk: who cannot read it cannot sign
// for it. With WriteKey() more nodes can be added later.
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

// authority.pem, node.pem and node.key of a folder.
CertificateFiles CertificatesIn(const std::string& folder);

// authority.key of a folder.
std::string AuthorityKeyIn(const std::string& folder);

struct CertificateOptions {
  absl::Time now;
  // Counted from `now`. Valid from an hour before it, since clocks differ.
  absl::Duration validity = absl::Hours(7 * 24);
};

struct NodePem {
  std::string certificate;
  std::string key;
};

class Authority {
 public:
  // A new one, of which nothing is on the disk.
  static absl::StatusOr<Authority> Make(const CertificateOptions& options);
  // The one that WriteCertificate() and WriteKey() left in a folder.
  static absl::StatusOr<Authority> Load(const std::string& folder);

  // folder/authority.pem; every node needs a copy.
  absl::Status WriteCertificate(const std::string& folder) const;
  // folder/authority.key; whoever has it can let anybody in.
  absl::Status WriteKey(const std::string& folder) const;

  absl::StatusOr<std::string> CertificatePem() const;

  // For a node that is reached as `hosts`,
  // names or IP addresses, the first of which becomes its name; at least one.
  // Valid no longer than the authority is.
  //   kInvalidArgument: no host, or one that is no name.
  absl::StatusOr<NodePem> SignNode(const std::vector<std::string>& hosts,
                                   const CertificateOptions& options) const;
  // The same in folder/node.pem and folder/node.key; both files or none.
  absl::Status WriteNode(const std::string& folder,
                         const std::vector<std::string>& hosts,
                         const CertificateOptions& options) const;

 private:
  Authority(Key key, X509Ptr certificate);

  Key key_;
  X509Ptr certificate_;
};

// A file of memory with that text, which no disk ever holds and which is gone
// when the last process closes it. Another process that gets it open reads it
// as /proc/self/fd/<number>. The caller closes it.
absl::StatusOr<int> OpenInMemory(const std::string& name,
                                 absl::string_view text);

// kInvalidArgument where `host` is no name or address of a host.
absl::Status CheckHost(const std::string& host);

// A folder that its owner alone can enter (mode 0700), and those above it. One
// that is there stays as it is.
absl::Status MakePrivateFolder(const std::string& path);

}  // namespace troupe::base::tls

#endif  // BASE_TLS_CERTIFICATES_H_
