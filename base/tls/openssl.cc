#include "base/tls/openssl.h"

#include <openssl/err.h>

#include "absl/strings/str_cat.h"

namespace troupe::base::tls {

std::string OpenSslReason() {
  const unsigned long error = ERR_peek_last_error();
  ERR_clear_error();
  const char* reason = ERR_reason_error_string(error);
  return reason == nullptr ? "no reason is known" : reason;
}

absl::Status OpenSslError(absl::string_view verb) {
  return absl::InternalError(
      absl::StrCat("cannot ", verb, ": ", OpenSslReason()));
}

}  // namespace troupe::base::tls
