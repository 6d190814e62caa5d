// What a user's code asks for and cannot have, where a call has no Status to
// return: a tensor's elements, say, where it has no memory.
//
//   if (!host_accessible()) throw base::UsageError("f32[2, 3] has no memory");
//
// The one exception that is ours. It leaves the user's code and is caught where
// Troupe called that: a module's makes its Context fail (nn/modules/module.h).
// Nothing that Troupe itself does raises one.

#ifndef BASE_USAGE_ERROR_H_
#define BASE_USAGE_ERROR_H_

#include <stdexcept>

namespace troupe::base {

class UsageError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

}  // namespace troupe::base

#endif  // BASE_USAGE_ERROR_H_
