#include "base/tls/random_bytes.h"

#include <openssl/rand.h>

#include "base/check.h"

namespace troupe::base::tls {

std::string RandomBytes(int count) {
  std::string bytes(count, '\0');
  TROUPE_CHECK(
      RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), count) == 1,
      "the system has random numbers");
  return bytes;
}

}  // namespace troupe::base::tls
