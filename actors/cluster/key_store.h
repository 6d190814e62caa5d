// The key-value store of a job's processes, with the requests that wait for a
// key. It holds the handles of those that wait, but sends nothing.
//
//   KeyStore keys;
//   keys.Await("address of 1", sender);           // it is not set yet
//   TROUPE_ASSIGN_OR_RETURN(auto waiting, keys.Set("address of 1", "node7"));
//   for (const caf::strong_actor_ptr& each : waiting) Answer(each);
//   if (const std::string* value = keys.Find("address of 1")) Use(*value);
//
// Threads: the coordinator's strand.

#ifndef ACTORS_CLUSTER_KEY_STORE_H_
#define ACTORS_CLUSTER_KEY_STORE_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "actors/caf/caf.h"

namespace troupe::actors {

class KeyStore {
 public:
  // Limits on the bytes of a key with its value, and on the number of keys: an
  // address for every pair of processes fits.
  static constexpr std::size_t kKeyBytesMax = 4096;
  static constexpr std::size_t kKeysMax = 1 << 17;

  // Sets a key. Returns the actors that wait for it, which no longer do.
  //   kResourceExhausted: the key exceeds a limit; names both.
  absl::StatusOr<std::vector<caf::strong_actor_ptr>> Set(
      const std::string& key, const std::string& value);
  // Returns the value of a key; null if it is not set. Valid until Set().
  const std::string* Find(const std::string& key) const;
  // Adds an actor that waits for a key, which must not be set.
  void Await(const std::string& key, caf::strong_actor_ptr actor);
  // Returns all actors that wait for a key, which no longer do.
  std::vector<caf::strong_actor_ptr> TakeWaiting();

 private:
  std::map<std::string, std::string> values_;
  std::map<std::string, std::vector<caf::strong_actor_ptr>> waiting_;
};

}  // namespace troupe::actors

#endif  // ACTORS_CLUSTER_KEY_STORE_H_
