// Unpredictable bytes: tokens, nonces, ids. Not for training, whose random
// numbers must be equal on every machine (nn/random).
//
//   const std::string token = RandomBytes(32);

#ifndef BASE_TLS_RANDOM_BYTES_H_
#define BASE_TLS_RANDOM_BYTES_H_

#include <string>

namespace troupe::base::tls {

// Throws std::bad_alloc if there is no memory.
std::string RandomBytes(int count);

}  // namespace troupe::base::tls

#endif  // BASE_TLS_RANDOM_BYTES_H_
