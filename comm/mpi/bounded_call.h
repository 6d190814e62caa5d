// A call that may never return, and a caller who does not wait for ever.
//
//   if (!CallWithin([] { EndMpi(); }, absl::Seconds(5))) {
//     // One of the others stands still; the call goes on in its thread.
//   }
//
// What the call uses must live as long as it does: give it shares.

#ifndef COMM_MPI_BOUNDED_CALL_H_
#define COMM_MPI_BOUNDED_CALL_H_

#include <functional>

#include "absl/time/time.h"

namespace troupe::comm::internal {

// Runs `call` in a thread of its own. True when it has returned; false after
// `timeout`, or soon after `goes_on` (which may be null) has said no: then the
// thread is left behind.
bool CallWithin(std::function<void()> call, absl::Duration timeout,
                const std::function<bool()>& goes_on = nullptr);

}  // namespace troupe::comm::internal

#endif  // COMM_MPI_BOUNDED_CALL_H_
