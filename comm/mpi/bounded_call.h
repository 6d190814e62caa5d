// Runs a call that may never return, with a limit on the wait.
//
//   if (!CallWithin([] { EndMpi(); }, absl::Seconds(5))) {
//     // Another process is stuck; the call goes on in its thread.
//   }
//
// Data that the call uses must live as long as it runs: pass shared pointers.

#ifndef COMM_MPI_BOUNDED_CALL_H_
#define COMM_MPI_BOUNDED_CALL_H_

#include <functional>

#include "absl/time/time.h"

namespace troupe::comm::internal {

// Runs `call` in a thread of its own. Returns true once it has returned; false
// after `timeout`, or soon after `goes_on` (which may be null) returned false.
// The thread then runs on, detached.
bool CallWithin(std::function<void()> call, absl::Duration timeout,
                const std::function<bool()>& goes_on = nullptr);

}  // namespace troupe::comm::internal

#endif  // COMM_MPI_BOUNDED_CALL_H_
