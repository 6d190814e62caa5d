// Returns the text of an exception that user or library code threw, for the
// Status that it becomes when it is caught.
//
//   try {
//     return update.Apply(begin, sum);
//   } catch (...) {
//     return absl::InternalError(ExceptionText(std::current_exception()));
//   }

#ifndef BASE_EXCEPTION_TEXT_H_
#define BASE_EXCEPTION_TEXT_H_

#include <exception>
#include <new>
#include <string>

namespace troupe::base {

inline std::string ExceptionText(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::bad_alloc&) {
    return "the process has no memory left (std::bad_alloc); raise its limit "
           "(ulimit -v), or use fewer ranks";
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}

}  // namespace troupe::base

#endif  // BASE_EXCEPTION_TEXT_H_
