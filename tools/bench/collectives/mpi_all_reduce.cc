// A peer of the collectives benchmark: MPI_Allreduce itself. It reads and
// answers the lines of turns.h; mpirun starts it.
//
//   mpirun -n 2 mpi_all_reduce
//
// Ranks that wait for a turn poll every millisecond, so that they take no time
// from the contestant that is measured.

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>
#include <poll.h>

#include <cstdint>
#include <vector>

#include "tools/bench/collectives/turns.h"

namespace troupe::bench {
namespace {

void Wait(MPI_Request* request) {
  for (int done = 0;;) {
    MPI_Test(request, &done, MPI_STATUS_IGNORE);
    if (done != 0) return;
    ::poll(nullptr, 0, /*timeout=*/1);
  }
}

void Serve(int rank) {
  for (;;) {
    Turn turn;
    if (rank == 0) ReadTurn(&turn);
    std::int64_t words[3] = {turn.bytes, turn.count, turn.blocks};
    MPI_Request told;
    MPI_Ibcast(words, 3, MPI_INT64_T, /*root=*/0, MPI_COMM_WORLD, &told);
    Wait(&told);
    turn = {words[0], words[1], words[2]};
    if (turn.bytes == 0) return;
    std::vector<float> values(turn.bytes / 4);
    const double us = MedianOfBlocks(turn, [&] {
      MPI_Allreduce(MPI_IN_PLACE, values.data(),
                    static_cast<int>(values.size()), MPI_FLOAT, MPI_SUM,
                    MPI_COMM_WORLD);
    });
    if (rank == 0) Answer(us);
  }
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  troupe::bench::Serve(rank);
  MPI_Finalize();
  return 0;
}
