// Replaces comm/mpi/mpi_process.cc where mpi.h was not found.

#include "comm/mpi/mpi_process.h"

#include "absl/status/status.h"

namespace troupe::comm {

namespace internal {
class MpiContext {};
}  // namespace internal

namespace {

absl::Status NoMpi() {
  return absl::UnimplementedError(
      "MPI_Init() is not in this build; install libopenmpi-dev and build "
      "again");
}

}  // namespace

absl::StatusOr<std::unique_ptr<MpiProcess>> MpiProcess::Start(
    absl::Duration, const std::function<absl::Status()>&) {
  return NoMpi();
}

absl::StatusOr<std::string> MpiProcess::Version() { return NoMpi(); }

MpiProcess::MpiProcess(std::shared_ptr<internal::MpiContext> context)
    : context_(std::move(context)) {}
MpiProcess::~MpiProcess() = default;

int MpiProcess::process() const { return 0; }
int MpiProcess::processes() const { return 1; }

absl::StatusOr<std::vector<std::unique_ptr<Link>>> MpiProcess::MakeLinks(
    std::uint32_t) {
  return std::vector<std::unique_ptr<Link>>(1);
}

void MpiProcess::GiveUp(const absl::Status&) {}

}  // namespace troupe::comm
