// Owning pointers for OpenSSL's objects, and its errors as text.
//
//   Bio bio(BIO_new(BIO_s_mem()));
//   Key key(EVP_EC_gen("P-256"));
//   if (key == nullptr) return OpenSslError("make a key");

#ifndef BASE_TLS_OPENSSL_H_
#define BASE_TLS_OPENSSL_H_

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace troupe::base::tls {

template <auto kFree>
struct Freer {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};

using Bio = std::unique_ptr<BIO, Freer<BIO_free_all>>;
using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using X509Ptr = std::unique_ptr<X509, Freer<X509_free>>;

// Returns why the last call of this thread failed, in OpenSSL's words, and
// clears it. Throws std::bad_alloc if it ran out of memory, which OpenSSL may
// report as an error of the data that it was reading.
std::string OpenSslReason();

// Returns kInternal: "cannot <verb>: <reason>".
absl::Status OpenSslError(absl::string_view verb);

}  // namespace troupe::base::tls

#endif  // BASE_TLS_OPENSSL_H_
