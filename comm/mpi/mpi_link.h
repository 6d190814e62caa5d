// A link over Open MPI (mpi_process.h).
//
//   MpiLinkOptions options;
//   options.peer = options.rank = 1;
//   std::unique_ptr<Link> link = MakeMpiLink(context, options);
//
// Each direction has three tags: one for headers, with short payloads behind
// them, and the next two for long payloads (mpi_sends.h).

#ifndef COMM_MPI_MPI_LINK_H_
#define COMM_MPI_MPI_LINK_H_

#include <memory>
#include <string>

#include "comm/link.h"
#include "comm/mpi/mpi_context.h"

namespace troupe::comm::internal {

struct MpiLinkOptions {
  int peer = 0;         // number of the process at the other end
  int rank = 0;         // rank in MPI_COMM_WORLD
  std::string address;  // for errors; empty: "MPI rank 0"
  int send_tag = 0;     // the next two tags are used, too
  int receive_tag = 0;
};

std::unique_ptr<Link> MakeMpiLink(std::shared_ptr<MpiContext> context,
                                  const MpiLinkOptions& options);

}  // namespace troupe::comm::internal

#endif  // COMM_MPI_MPI_LINK_H_
