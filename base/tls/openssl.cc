#include "base/tls/openssl.h"

#include <openssl/err.h>

#include <new>

#include "absl/strings/str_cat.h"

namespace troupe::base::tls {

std::string OpenSslReason() {
  unsigned long last = 0;
  bool no_memory = false;
  while (const unsigned long error = ERR_get_error()) {
    last = error;
    no_memory |= ERR_GET_REASON(error) == ERR_R_MALLOC_FAILURE;
  }
  if (no_memory) throw std::bad_alloc();
  const char* reason = ERR_reason_error_string(last);
  return reason == nullptr ? "no reason is known" : reason;
}

absl::Status OpenSslError(absl::string_view verb) {
  return absl::InternalError(
      absl::StrCat("cannot ", verb, ": ", OpenSslReason()));
}

}  // namespace troupe::base::tls
