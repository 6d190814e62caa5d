// Exception for a misuse in user code, thrown by calls that return no Status:
// reading the elements of a tensor that has no memory, for example.
//
//   if (!host_accessible()) throw base::UsageError("f32[2, 3] has no memory");
//
// It leaves the user's code and is caught by the Troupe code that called it: an
// error in a module makes its Context fail (nn/modules/module.h). The other
// exception class is base::StatusError (base/status_error.h).

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
