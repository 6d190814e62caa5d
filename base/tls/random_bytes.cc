#include "base/tls/random_bytes.h"

#include <openssl/rand.h>

#include <new>

namespace troupe::base::tls {

std::string RandomBytes(int count) {
  std::string bytes(count, '\0');
  // Linux always has random bytes; OpenSSL may lack memory for its generator.
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), count) != 1) {
    throw std::bad_alloc();
  }
  return bytes;
}

}  // namespace troupe::base::tls
