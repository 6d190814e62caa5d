// Declares names that the usage comments in comm/mpi/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_COMM_MPI_H_
#define TESTS_USAGE_WORDS_COMM_MPI_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "base/check.h"
#include "comm/link.h"

namespace troupe::comm::usage::mpi_process_h {
extern const Frame frame;
extern const char* const payload;
}  // namespace troupe::comm::usage::mpi_process_h

namespace troupe::comm::internal {
class MpiContext;
namespace usage::bounded_call_h {
void EndMpi();
}
namespace usage::mpi_link_h {
extern const std::shared_ptr<MpiContext> context;
}
namespace usage::mpi_payloads_h {
extern const std::shared_ptr<MpiContext> context;
extern const Frame frame;
extern char* const place;
void Use(const char* data);
}  // namespace usage::mpi_payloads_h
namespace usage::mpi_sends_h {
extern const std::shared_ptr<MpiContext> context;
extern const Frame frame;
extern const char* const payload;
extern const std::string last_words;
extern const absl::Status why;
extern SendDone* done;
}  // namespace usage::mpi_sends_h
}  // namespace troupe::comm::internal

#endif  // TESTS_USAGE_WORDS_COMM_MPI_H_
