#include "tools/trainer/launch/cluster_setup.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "comm/mpi/mpi_process.h"
#include "gtest/gtest.h"

namespace troupe::tools {
namespace {

using actors::Transport;

// Process 1 of 2, started by mpirun or by something else.
actors::Placement Second(const std::string& found_by) {
  actors::Placement placement;
  placement.process = 1;
  placement.processes = 2;
  placement.meeting = actors::Meeting::kAddress;
  placement.master = {"127.0.0.1", 29400};
  placement.found_by = found_by;
  placement.by_mpirun = found_by == "Open MPI";
  return placement;
}

absl::StatusOr<Transport> TransportWith(const std::string& transport,
                                        const std::string& found_by,
                                        const std::string& encrypt = "false") {
  const auto loaded =
      ParseConfig("[train]\nsteps = 1\n[mesh]\ndp = 2\n", "run.toml",
                  {{"comm.transport", transport, "--set"},
                   {"comm.encrypt", encrypt, "--set"}});
  if (!loaded.ok()) return loaded.status();
  const auto cluster = ClusterOf(Second(found_by), *loaded, /*insecure=*/true);
  if (!cluster.ok()) return cluster.status();
  return (*cluster)->transport;
}

TEST(ClusterSetup, TransportIsTheConfigurations) {
  EXPECT_EQ(TransportWith("auto", "Slurm").value(), Transport::kAuto);
  EXPECT_EQ(TransportWith("shm", "Slurm").value(), Transport::kShm);
  EXPECT_EQ(TransportWith("tcp", "Open MPI", "true").value(), Transport::kTcp);
}

TEST(ClusterSetup, MpiIsForThoseThatMpirunStarts) {
  const absl::StatusOr<std::string> mpi = comm::MpiProcess::Version();
  const absl::StatusOr<Transport> with = TransportWith("mpi", "Open MPI");
  if (mpi.ok()) {
    EXPECT_EQ(with.value(), Transport::kMpi);
  } else {
    EXPECT_EQ(with.status().code(), mpi.status().code());
    EXPECT_TRUE(
        absl::StartsWith(with.status().message(), "comm.transport = \"mpi\": "))
        << with.status();
  }
  EXPECT_EQ(TransportWith("mpi", "torchrun").status(),
            absl::InvalidArgumentError(
                "comm.transport = \"mpi\", but this process was launched by "
                "torchrun; write \"mpirun -n 2 trainer train ...\", or set "
                "comm.transport = \"auto\""));
}

TEST(ClusterSetup, MpiDoesNotEncrypt) {
  EXPECT_EQ(TransportWith("mpi", "Open MPI", "true").status(),
            absl::InvalidArgumentError(
                "comm.encrypt = true, but with comm.transport = \"mpi\" "
                "tensors go as MPI sends them; remove one of the two"));
}

}  // namespace
}  // namespace troupe::tools
