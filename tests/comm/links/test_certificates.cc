#include "tests/comm/links/test_certificates.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::comm {
namespace {

using Key = std::unique_ptr<EVP_PKEY, decltype(&::EVP_PKEY_free)>;
using Certificate = std::unique_ptr<X509, decltype(&::X509_free)>;

Key MakeKey() { return Key(EVP_EC_gen("P-256"), &::EVP_PKEY_free); }

// Makes a certificate signed by `issuer`; if that is null, a self-signed
// authority.
Certificate Make(const std::string& name, EVP_PKEY* key, X509* issuer,
                 EVP_PKEY* issuer_key) {
  Certificate made(::X509_new(), &::X509_free);
  ::X509_set_version(made.get(), X509_VERSION_3);
  ::ASN1_INTEGER_set(::X509_get_serialNumber(made.get()),
                     issuer == nullptr ? 1 : 2);
  ::X509_gmtime_adj(::X509_getm_notBefore(made.get()), -3600);
  ::X509_gmtime_adj(::X509_getm_notAfter(made.get()), 3600);
  ::X509_set_pubkey(made.get(), key);
  ::X509_NAME_add_entry_by_txt(
      ::X509_get_subject_name(made.get()), "CN", MBSTRING_ASC,
      reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509* const signer = issuer == nullptr ? made.get() : issuer;
  ::X509_set_issuer_name(made.get(), ::X509_get_subject_name(signer));
  if (issuer == nullptr) {
    X509_EXTENSION* const is_authority = ::X509V3_EXT_conf_nid(
        nullptr, nullptr, NID_basic_constraints, "critical,CA:TRUE");
    ::X509_add_ext(made.get(), is_authority, -1);
    ::X509_EXTENSION_free(is_authority);
  }
  TROUPE_CHECK(::X509_sign(made.get(), issuer_key, ::EVP_sha256()) > 0,
               "a certificate can be signed");
  return made;
}

template <typename Write>
std::string WriteFile(const std::string& path, const Write& write) {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  TROUPE_CHECK(file != nullptr && write(file) == 1, "tests can write files");
  std::fclose(file);
  return path;
}

}  // namespace

TlsFiles MakeTestCertificates(const std::string& folder,
                              const std::string& name) {
  const Key authority_key = MakeKey();
  const Certificate authority = Make(name + " authority", authority_key.get(),
                                     nullptr, authority_key.get());
  const Key key = MakeKey();
  const Certificate certificate =
      Make(name, key.get(), authority.get(), authority_key.get());
  const std::string path = absl::StrCat(folder, "/", name, "_", ::getpid());
  TlsFiles files;
  files.authority = WriteFile(path + "_ca.pem", [&](std::FILE* file) {
    return ::PEM_write_X509(file, authority.get());
  });
  files.certificate = WriteFile(path + ".pem", [&](std::FILE* file) {
    return ::PEM_write_X509(file, certificate.get());
  });
  files.key = WriteFile(path + ".key", [&](std::FILE* file) {
    return ::PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr,
                                  nullptr);
  });
  return files;
}

}  // namespace troupe::comm
