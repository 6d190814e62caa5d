// XXH64, a hash as fast as memory that is the same on every little-endian
// machine and in every version (Collet, "xxHash fast digest algorithm",
// doc/xxhash_spec.md). Not cryptographic: it finds accidents, not intent.
//
//   std::uint64_t hash = XxHash64(data, data_bytes);
//   hash = XxHash64(more, more_bytes, /*seed=*/hash);   // of both
//
// Written here, since the libraries of this project have no such hash. It reads
// four words at once; FnvHash (fnv_hash.h), whose words wait for each other,
// takes three times as long. Threads: any.

#ifndef BASE_XX_HASH_H_
#define BASE_XX_HASH_H_

#include <cstddef>
#include <cstdint>

namespace troupe::base {

std::uint64_t XxHash64(const void* bytes, std::size_t count,
                       std::uint64_t seed = 0);

}  // namespace troupe::base

#endif  // BASE_XX_HASH_H_
