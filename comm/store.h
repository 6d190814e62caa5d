// Where processes of a job leave words for each other before they are
// connected: addresses, ids, tokens. Few, small, and written once.
//
//   TROUPE_RETURN_IF_ERROR(store.Set("address/0", "10.0.0.7:40112"));
//   TROUPE_ASSIGN_OR_RETURN(const std::string address,
//                           store.Get("address/1", absl::Seconds(30)));
//
// Threads: any.

#ifndef COMM_STORE_H_
#define COMM_STORE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace troupe::comm {

class Store {
 public:
  virtual ~Store() = default;

  // The value is there for all processes from now on; replaces one before.
  virtual absl::Status Set(const std::string& key, std::string value) = 0;

  // Waits until there is a value, `timeout` at most; zero only looks.
  //   kDeadlineExceeded: nobody has set `key`.
  virtual absl::StatusOr<std::string> Get(const std::string& key,
                                          absl::Duration timeout) = 0;

  // Why no more values will come, if that is known; at once. For those who wait
  // for other processes by other means.
  virtual absl::Status Check() { return absl::OkStatus(); }
};

}  // namespace troupe::comm

#endif  // COMM_STORE_H_
