// A key-value store (torch.distributed.Store) in which the processes of a job
// publish addresses, ids and tokens before they are connected. Values are few
// and small, and written once.
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

  // Publishes a value to all processes; replaces an earlier one.
  virtual absl::Status Set(const std::string& key, std::string value) = 0;

  // Returns the value, waiting for it for at most `timeout`; zero does not
  // wait.
  //   kDeadlineExceeded: `key` has not been set.
  virtual absl::StatusOr<std::string> Get(const std::string& key,
                                          absl::Duration timeout) = 0;

  // Returns why no more values will arrive, if that is known; does not wait.
  // For callers that wait for other processes by other means.
  virtual absl::Status Check() { return absl::OkStatus(); }
};

}  // namespace troupe::comm

#endif  // COMM_STORE_H_
