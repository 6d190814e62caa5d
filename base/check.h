// Ends the process with file, line and a sentence on a violated invariant.
// Errors that can occur in a correct program are an absl::Status instead
// (docs/errors.md).
//
//   TROUPE_CHECK(begin <= end, "a range runs forwards");
//
// Always on; costs one predictable branch.

#ifndef BASE_CHECK_H_
#define BASE_CHECK_H_

#include <cstdio>
#include <cstdlib>

namespace troupe {

[[noreturn]] inline void CheckFailed(const char* file, int line,
                                     const char* condition, const char* why) {
  std::fprintf(stderr, "%s:%d: bug in Troupe: %s does not hold: %s\n", file,
               line, condition, why);
  std::abort();
}

}  // namespace troupe

#define TROUPE_CHECK(condition, why)  \
  ((condition) ? static_cast<void>(0) \
               : ::troupe::CheckFailed(__FILE__, __LINE__, #condition, why))

// Returns the status from the enclosing function unless it is ok.
#define TROUPE_RETURN_IF_ERROR(expr)                      \
  do {                                                    \
    if (::absl::Status status_ = (expr); !status_.ok()) { \
      return status_;                                     \
    }                                                     \
  } while (false)

#define TROUPE_CONCAT_INNER_(a, b) a##b
#define TROUPE_CONCAT_(a, b) TROUPE_CONCAT_INNER_(a, b)

// TROUPE_ASSIGN_OR_RETURN(Tensor t, Make());
#define TROUPE_ASSIGN_OR_RETURN(lhs, expr) \
  TROUPE_ASSIGN_OR_RETURN_IMPL_(TROUPE_CONCAT_(status_or_, __LINE__), lhs, expr)
#define TROUPE_ASSIGN_OR_RETURN_IMPL_(var, lhs, expr) \
  auto var = (expr);                                  \
  if (!var.ok()) return std::move(var).status();      \
  lhs = *std::move(var)

#endif  // BASE_CHECK_H_
