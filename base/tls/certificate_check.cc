#include "base/tls/certificate_check.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <sys/stat.h>

#include <ctime>
#include <memory>
#include <new>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "base/check.h"
#include "base/files/file_system.h"

namespace troupe::base::tls {
namespace {

constexpr std::int64_t kFileBytesMax = 1 << 20;

using Store = std::unique_ptr<X509_STORE, Freer<X509_STORE_free>>;
using StoreContext =
    std::unique_ptr<X509_STORE_CTX, Freer<X509_STORE_CTX_free>>;
struct ChainFreer {
  // Does not free the certificates.
  void operator()(STACK_OF(X509) * chain) const { sk_X509_free(chain); }
};
using Chain = std::unique_ptr<STACK_OF(X509), ChainFreer>;

// Prevents a prompt at a terminal.
int NoPassphrase(char*, int, int, void*) { return 0; }

absl::StatusOr<std::string> Read(const std::string& path) {
  PosixFileSystem files;
  return ReadWholeFile(files, path, kFileBytesMax);
}

Bio Reader(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string CommonName(X509* certificate) {
  char name[256] = "";
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName,
                            name, sizeof(name));
  return name;
}

std::string IssuerName(X509* certificate) {
  char name[256] = "";
  X509_NAME_get_text_by_NID(X509_get_issuer_name(certificate), NID_commonName,
                            name, sizeof(name));
  return name;
}

absl::Time TimeOf(const ASN1_TIME* time) {
  std::tm utc = {};
  if (ASN1_TIME_to_tm(time, &utc) != 1) return absl::InfinitePast();
  return absl::FromTM(utc, absl::UTCTimeZone());
}

std::string Day(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M UTC", time, absl::UTCTimeZone());
}

absl::Status CheckDates(X509* certificate, const std::string& path,
                        absl::Time now) {
  const absl::Time begin = TimeOf(X509_get0_notBefore(certificate));
  const absl::Time end = TimeOf(X509_get0_notAfter(certificate));
  if (now < begin) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is valid from ", Day(begin), " on, and it is ",
                     Day(now), " here; set this machine's clock right"));
  }
  if (now > end) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, " was valid until ", Day(end), ", and it is ", Day(now),
        " here; make new certificates (trainer certs), or set the clock"));
  }
  return absl::OkStatus();
}

// Permits a group to read a file that root owns: Kubernetes mounts secrets like
// that for users other than root.
absl::Status CheckMode(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return FileError(errno, "read", path);
  const mode_t wrong =
      info.st_uid == 0 ? S_IWGRP | S_IXGRP | S_IRWXO : S_IRWXG | S_IRWXO;
  if ((info.st_mode & wrong) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "others than its owner may use %s (mode %04o); run chmod 600 %s", path,
      static_cast<unsigned>(info.st_mode & 07777), path));
}

// Checks that one of `authorities` has signed it, through the rest of `chain`.
absl::Status CheckSigned(const std::vector<X509Ptr>& chain,
                         const std::vector<X509Ptr>& authorities,
                         const CertificateFiles& files, absl::Time now) {
  const Store store(X509_STORE_new());
  const StoreContext context(X509_STORE_CTX_new());
  const Chain between(sk_X509_new_null());
  bool ok = store != nullptr && context != nullptr && between != nullptr;
  for (const X509Ptr& authority : authorities) {
    ok = ok && X509_STORE_add_cert(store.get(), authority.get()) == 1;
  }
  for (std::size_t i = 1; i < chain.size(); ++i) {
    ok = ok && sk_X509_push(between.get(), chain[i].get()) > 0;
  }
  ok = ok && X509_STORE_CTX_init(context.get(), store.get(), chain[0].get(),
                                 between.get()) == 1;
  if (!ok) return OpenSslError("verify a certificate");
  X509_STORE_CTX_set_time(context.get(), /*flags=*/0, absl::ToTimeT(now));
  if (X509_verify_cert(context.get()) == 1) return absl::OkStatus();
  const int error = X509_STORE_CTX_get_error(context.get());
  ERR_clear_error();
  if (error == X509_V_ERR_OUT_OF_MEM) throw std::bad_alloc();
  const char* why = X509_verify_cert_error_string(error);
  return absl::InvalidArgumentError(absl::StrCat(
      files.certificate, " was signed by \"", IssuerName(chain[0].get()),
      "\", which ", files.authority, ", \"", CommonName(authorities[0].get()),
      "\", does not vouch for (", why,
      "); copy both from one folder of certificates"));
}

}  // namespace

absl::StatusOr<std::vector<X509Ptr>> ReadCertificates(const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(const std::string text, Read(path));
  const Bio bio = Reader(text);
  std::vector<X509Ptr> chain;
  while (X509* next =
             PEM_read_bio_X509(bio.get(), nullptr, NoPassphrase, nullptr)) {
    chain.emplace_back(next);
  }
  const std::string reason = OpenSslReason();
  if (!chain.empty()) return chain;
  return absl::InvalidArgumentError(
      absl::StrCat("cannot read ", path, ": it has no certificate (", reason,
                   "); it must be a PEM file"));
}

absl::StatusOr<Key> ReadPrivateKey(const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(const std::string text, Read(path));
  const Bio bio = Reader(text);
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassphrase, nullptr));
  if (key != nullptr) return key;
  return absl::InvalidArgumentError(absl::StrCat(
      "cannot read ", path, ": it has no private key (", OpenSslReason(),
      "); it must be a PEM file without passphrase"));
}

absl::Status CheckKeyOf(X509* certificate, const std::string& path,
                        EVP_PKEY* key, const std::string& key_path) {
  if (X509_check_private_key(certificate, key) == 1) return absl::OkStatus();
  ERR_clear_error();
  return absl::InvalidArgumentError(
      absl::StrCat(key_path, " is not the key of ", path,
                   "; copy both from one folder of certificates"));
}

absl::StatusOr<std::string> NameOf(const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<X509Ptr> chain,
                          ReadCertificates(path));
  return CommonName(chain[0].get());
}

absl::Status CheckCertificates(const CertificateFiles& files, absl::Time now) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<X509Ptr> authorities,
                          ReadCertificates(files.authority));
  TROUPE_ASSIGN_OR_RETURN(const std::vector<X509Ptr> chain,
                          ReadCertificates(files.certificate));
  TROUPE_ASSIGN_OR_RETURN(const Key key, ReadPrivateKey(files.key));
  TROUPE_RETURN_IF_ERROR(CheckMode(files.key));
  TROUPE_RETURN_IF_ERROR(
      CheckKeyOf(chain[0].get(), files.certificate, key.get(), files.key));
  TROUPE_RETURN_IF_ERROR(CheckDates(chain[0].get(), files.certificate, now));
  TROUPE_RETURN_IF_ERROR(
      CheckDates(authorities[0].get(), files.authority, now));
  return CheckSigned(chain, authorities, files, now);
}

}  // namespace troupe::base::tls
