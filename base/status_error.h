// Exception that carries a Status, for code that returns values instead of a
// StatusOr: a program's own training loop.
//
//   Tensor weights = base::OrThrow(Load(path));    // throws if there is none
//   absl::Status status = base::Try([&] { Train(weights); });
//
// A Var (nn/autograd/var.h) throws it on the line whose op failed. Inside a
// module the module catches it (nn/modules/module.h), and the error has the
// module's path. Troupe's engines return a Status and never throw.

#ifndef BASE_STATUS_ERROR_H_
#define BASE_STATUS_ERROR_H_

#include <exception>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace troupe::base {

class StatusError : public std::exception {
 public:
  explicit StatusError(absl::Status status)
      : status_(std::move(status)), text_(status_.message()) {}

  const absl::Status& status() const { return status_; }
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  const absl::Status status_;
  const std::string text_;
};

// Return the value, or nothing, and throw a StatusError if there is an error.
template <typename T>
T OrThrow(absl::StatusOr<T> value) {
  if (!value.ok()) throw StatusError(std::move(value).status());
  return *std::move(value);
}
inline void OrThrow(const absl::Status& status) {
  if (!status.ok()) throw StatusError(status);
}

// Calls run() and returns the Status of the StatusError that it threw, if any.
// Other exceptions pass through.
template <typename Run>
absl::Status Try(Run run) {
  try {
    run();
  } catch (const StatusError& error) {
    return error.status();
  }
  return absl::OkStatus();
}

}  // namespace troupe::base

#endif  // BASE_STATUS_ERROR_H_
