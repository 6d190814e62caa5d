// Declares names that the usage comments in base/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_BASE_H_
#define TESTS_USAGE_WORDS_BASE_H_

#include <fcntl.h>

#include <cstddef>
#include <string>
#include <typeinfo>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/cpu_isa.h"
#include "base/event.h"
#include "base/field_error.h"
#include "base/files/file_system.h"

namespace troupe::usage::check_h {
extern const int begin, end;
}  // namespace troupe::usage::check_h

namespace troupe::base::usage {

namespace cpu_cores_h {
extern const int ranks_here;
}

namespace cpu_isa_h {
struct Loops;
extern const Loops* loops;
const Loops& Avx2Loops();
}  // namespace cpu_isa_h

namespace event_h {
void Show(const absl::Status& status);
void GoOn();
extern const Event done, mine;
}  // namespace event_h

namespace exception_text_h {
struct Update {
  absl::Status Apply(int begin, const float* sum);
};
extern Update update;
extern const int begin;
extern const float* sum;
}  // namespace exception_text_h

namespace fiber_h {
extern std::vector<int> mail;
void Handle(std::vector<int>& mail);
void Listen();
}  // namespace fiber_h

namespace field_error_h {
struct SgdOptions {
  double lr;
  absl::Status Validate() const;
};
extern const absl::Status status;
}  // namespace field_error_h

namespace fnv_hash_h {
extern const void* const data;
extern const std::size_t data_bytes;
}  // namespace fnv_hash_h

namespace xx_hash_h {
extern const void *const data, *const more;
extern const std::size_t data_bytes, more_bytes;
}  // namespace xx_hash_h

namespace file_system_h {
extern FileSystem& files;
extern const absl::string_view bytes;
}  // namespace file_system_h

namespace foreign_format_h {
extern const absl::string_view head;
}

namespace parallel_for_h {
extern std::vector<int> results;
int Work(std::int64_t i);
}  // namespace parallel_for_h

namespace status_error_h {
struct Tensor {};
absl::StatusOr<Tensor> Load(const std::string& path);
void Train(const Tensor& weights);
extern const std::string path;
}  // namespace status_error_h

namespace type_name_h {
struct Module {
  virtual ~Module();
};
extern const Module& module;
}  // namespace type_name_h

namespace usage_error_h {
bool host_accessible();
}

}  // namespace troupe::base::usage

#endif  // TESTS_USAGE_WORDS_BASE_H_
