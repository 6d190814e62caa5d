#include "base/tls/certificates.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/check.h"
#include "base/files/file_system.h"
#include "base/tls/certificate_check.h"

namespace troupe::base::tls {
namespace {

constexpr std::size_t kHostBytesMax = 253;  // limit on a DNS name
constexpr std::size_t kNameBytesMax = 64;   // limit on a common name, RFC 5280
constexpr int kSerialBits = 127;
constexpr absl::Duration kClockSkew = absl::Hours(1);

using Serial = std::unique_ptr<BIGNUM, Freer<BN_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, Freer<GENERAL_NAMES_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Freer<X509_EXTENSION_free>>;

bool SetSerial(X509* certificate) {
  const Serial serial(BN_new());
  return serial != nullptr &&
         BN_rand(serial.get(), kSerialBits, BN_RAND_TOP_ONE,
                 BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(certificate)) !=
             nullptr;
}

bool SetValidity(X509* certificate, const CertificateOptions& options) {
  const absl::Time begin = options.now - kClockSkew;
  const absl::Time end = options.now + options.validity;
  return ASN1_TIME_set(X509_getm_notBefore(certificate),
                       absl::ToTimeT(begin)) != nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(certificate), absl::ToTimeT(end)) !=
             nullptr;
}

bool SetName(X509* certificate, const std::string& name) {
  X509_NAME* subject = X509_get_subject_name(certificate);
  return X509_NAME_add_entry_by_txt(
             subject, "CN", MBSTRING_UTF8,
             reinterpret_cast<const unsigned char*>(name.data()),
             static_cast<int>(name.size()), /*loc=*/-1, /*set=*/0) == 1;
}

// `value` has the syntax of OpenSSL's configuration files; never user input.
bool AddExtension(X509* certificate, X509* issuer, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, /*req=*/nullptr,
                 /*crl=*/nullptr, /*flags=*/0);
  const Extension extension(
      X509V3_EXT_conf_nid(/*conf=*/nullptr, &context, nid, value));
  return extension != nullptr &&
         X509_add_ext(certificate, extension.get(), /*loc=*/-1) == 1;
}

// Adds `host` as an IP address if it is one, otherwise as a DNS name.
bool AddHost(GENERAL_NAMES* names, const std::string& host) {
  GENERAL_NAME* name = GENERAL_NAME_new();
  if (name == nullptr) return false;
  if (sk_GENERAL_NAME_push(names, name) == 0) {
    GENERAL_NAME_free(name);
    return false;
  }
  if (ASN1_OCTET_STRING* address = a2i_IPADDRESS(host.c_str())) {
    GENERAL_NAME_set0_value(name, GEN_IPADD, address);
    return true;
  }
  ASN1_IA5STRING* dns = ASN1_IA5STRING_new();
  if (dns == nullptr) return false;
  GENERAL_NAME_set0_value(name, GEN_DNS, dns);
  return ASN1_STRING_set(dns, host.data(), static_cast<int>(host.size())) == 1;
}

bool AddHosts(X509* certificate, const std::vector<std::string>& hosts) {
  const Names names(GENERAL_NAMES_new());
  if (names == nullptr) return false;
  for (const std::string& host : hosts) {
    if (!AddHost(names.get(), host)) return false;
  }
  return X509_add1_ext_i2d(certificate, NID_subject_alt_name, names.get(),
                           /*crit=*/0, X509V3_ADD_DEFAULT) == 1;
}

absl::Status CheckHosts(const std::vector<std::string>& hosts) {
  if (hosts.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        hosts.size(), " hosts for certificates; name at least one"));
  }
  for (const std::string& host : hosts) {
    TROUPE_RETURN_IF_ERROR(CheckHost(host));
  }
  return absl::OkStatus();
}

// `issuer` null: self-signed.
absl::StatusOr<X509Ptr> Begin(const std::string& name, EVP_PKEY* key,
                              X509* issuer, const CertificateOptions& options) {
  X509Ptr certificate(X509_new());
  X509* const made = certificate.get();
  const bool ok =
      made != nullptr && X509_set_version(made, X509_VERSION_3) == 1 &&
      SetSerial(made) && SetValidity(made, options) && SetName(made, name) &&
      X509_set_issuer_name(
          made, X509_get_subject_name(issuer ? issuer : made)) == 1 &&
      X509_set_pubkey(made, key) == 1;
  if (!ok) return OpenSslError("make a certificate");
  return certificate;
}

absl::Status WriteAll(int fd, absl::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FileError(errno, "write", path);
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return absl::OkStatus();
}

// Returns the text that `write` puts into a BIO.
template <typename Write>
absl::StatusOr<std::string> PemOf(Write write) {
  const Bio bio(BIO_new(BIO_s_mem()));
  if (bio == nullptr || write(bio.get()) != 1) return OpenSslError("write PEM");
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &bytes);
  return std::string(bytes, static_cast<std::size_t>(size));
}

absl::StatusOr<std::string> PemOfKey(EVP_PKEY* key) {
  return PemOf([key](BIO* bio) {
    return PEM_write_bio_PrivateKey(bio, key, /*enc=*/nullptr, nullptr, 0,
                                    nullptr, nullptr);
  });
}

absl::StatusOr<std::string> PemOfCertificate(X509* certificate) {
  return PemOf(
      [certificate](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
}

// Writes a file that must not exist; removes it after an error.
absl::Status WriteNew(const std::string& path, mode_t mode,
                      absl::string_view text) {
  const int fd =
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (fd < 0) return FileError(errno, "create", path);
  const absl::Status status = WriteAll(fd, text, path);
  close(fd);
  if (!status.ok()) unlink(path.c_str());
  return status;
}

}  // namespace

CertificateFiles CertificatesIn(const std::string& folder) {
  return {JoinPath(folder, "authority.pem"), JoinPath(folder, "node.pem"),
          JoinPath(folder, "node.key")};
}

std::string AuthorityKeyIn(const std::string& folder) {
  return JoinPath(folder, "authority.key");
}

absl::Status CheckHost(const std::string& host) {
  constexpr char kInHosts[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:";
  if (!host.empty() && host.size() <= kHostBytesMax && host[0] != '.' &&
      host.find_first_not_of(kInHosts) == std::string::npos) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", host, "\" is no name or address of a host; write one such as ",
      "node1.example.org or 10.0.0.7"));
}

Authority::Authority(Key key, X509Ptr certificate)
    : key_(std::move(key)), certificate_(std::move(certificate)) {}

absl::StatusOr<Authority> Authority::Make(const CertificateOptions& options) {
  Key key(EVP_EC_gen("P-256"));
  if (key == nullptr) return OpenSslError("make a key");
  // The name is unique, so that certificates of two authorities can be told
  // apart.
  unsigned char id[8];
  if (RAND_bytes(id, sizeof(id)) != 1) return OpenSslError("draw a number");
  const absl::string_view bytes(reinterpret_cast<char*>(id), sizeof(id));
  const std::string name =
      absl::StrCat("Troupe authority ", absl::BytesToHexString(bytes));
  TROUPE_ASSIGN_OR_RETURN(X509Ptr made,
                          Begin(name, key.get(), /*issuer=*/nullptr, options));
  X509* const x = made.get();
  const bool ok =
      AddExtension(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
      AddExtension(x, x, NID_key_usage, "critical,keyCertSign,cRLSign") &&
      AddExtension(x, x, NID_subject_key_identifier, "hash") &&
      X509_sign(x, key.get(), EVP_sha256()) > 0;
  if (!ok) return OpenSslError("make an authority");
  return Authority(std::move(key), std::move(made));
}

absl::StatusOr<Authority> Authority::Load(const std::string& folder) {
  const std::string path = CertificatesIn(folder).authority;
  TROUPE_ASSIGN_OR_RETURN(std::vector<X509Ptr> chain, ReadCertificates(path));
  const std::string key_path = AuthorityKeyIn(folder);
  TROUPE_ASSIGN_OR_RETURN(Key key, ReadPrivateKey(key_path));
  TROUPE_RETURN_IF_ERROR(CheckKeyOf(chain[0].get(), path, key.get(), key_path));
  return Authority(std::move(key), std::move(chain[0]));
}

absl::StatusOr<std::string> Authority::CertificatePem() const {
  return PemOfCertificate(certificate_.get());
}

absl::Status Authority::WriteCertificate(const std::string& folder) const {
  TROUPE_ASSIGN_OR_RETURN(const std::string pem, CertificatePem());
  return WriteNew(CertificatesIn(folder).authority, 0644, pem);
}

absl::Status Authority::WriteKey(const std::string& folder) const {
  TROUPE_ASSIGN_OR_RETURN(const std::string pem, PemOfKey(key_.get()));
  return WriteNew(AuthorityKeyIn(folder), 0600, pem);
}

absl::StatusOr<NodePem> Authority::SignNode(
    const std::vector<std::string>& hosts,
    const CertificateOptions& options) const {
  TROUPE_RETURN_IF_ERROR(CheckHosts(hosts));
  const Key key(EVP_EC_gen("P-256"));
  if (key == nullptr) return OpenSslError("make a key");
  X509* const issuer = certificate_.get();
  TROUPE_ASSIGN_OR_RETURN(
      const X509Ptr made,
      Begin(hosts[0].substr(0, kNameBytesMax), key.get(), issuer, options));
  X509* const x = made.get();
  if (ASN1_TIME_compare(X509_get0_notAfter(issuer), X509_get0_notAfter(x)) <
      0) {
    X509_set1_notAfter(x, X509_get0_notAfter(issuer));
  }
  const bool ok =
      AddExtension(x, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
      AddExtension(x, issuer, NID_key_usage, "critical,digitalSignature") &&
      AddExtension(x, issuer, NID_ext_key_usage, "serverAuth,clientAuth") &&
      AddExtension(x, issuer, NID_subject_key_identifier, "hash") &&
      AddExtension(x, issuer, NID_authority_key_identifier, "keyid:always") &&
      AddHosts(x, hosts) && X509_sign(x, key_.get(), EVP_sha256()) > 0;
  if (!ok) return OpenSslError("sign a certificate");
  NodePem pem;
  TROUPE_ASSIGN_OR_RETURN(pem.certificate, PemOfCertificate(x));
  TROUPE_ASSIGN_OR_RETURN(pem.key, PemOfKey(key.get()));
  return pem;
}

absl::Status Authority::WriteNode(const std::string& folder,
                                  const std::vector<std::string>& hosts,
                                  const CertificateOptions& options) const {
  TROUPE_ASSIGN_OR_RETURN(const NodePem pem, SignNode(hosts, options));
  const CertificateFiles files = CertificatesIn(folder);
  TROUPE_RETURN_IF_ERROR(WriteNew(files.key, 0600, pem.key));
  const absl::Status status =
      WriteNew(files.certificate, 0644, pem.certificate);
  if (!status.ok()) unlink(files.key.c_str());
  return status;
}

absl::StatusOr<int> OpenInMemory(const std::string& name,
                                 absl::string_view text) {
  const int fd = memfd_create(name.c_str(), MFD_CLOEXEC);
  if (fd < 0) return FileError(errno, "create in memory", name);
  absl::Status status = WriteAll(fd, text, name);
  if (status.ok() && fchmod(fd, 0600) != 0) {
    status = FileError(errno, "protect", name);
  }
  if (status.ok()) return fd;
  close(fd);
  return status;
}

absl::Status MakePrivateFolder(const std::string& path) {
  for (std::size_t at = path.find('/', 1); at != std::string::npos;
       at = path.find('/', at + 1)) {
    const std::string above = path.substr(0, at);
    if (mkdir(above.c_str(), 0777) != 0 && errno != EEXIST) {
      return FileError(errno, "create the folder", above);
    }
  }
  if (mkdir(path.c_str(), 0700) == 0) return absl::OkStatus();
  const int error = errno;
  struct stat info = {};
  const bool is_folder =
      stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  return error == EEXIST && is_folder
             ? absl::OkStatus()
             : FileError(error, "create the folder", path);
}

}  // namespace troupe::base::tls
