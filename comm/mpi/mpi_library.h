// The functions of Open MPI that links use, loaded from the machine's library
// on first use. A program that does not call Load() needs no Open MPI, and
// starts as fast as without it.
//
//   absl::StatusOr<MpiLibrary> mpi = MpiLibrary::Load();
//   int rank = 0;
//   mpi->Comm_rank(mpi->world, &rank);
//
// Include it instead of <mpi.h>; constants such as MPI_COMM_WORLD are variables
// of the library, so they are members here.

#ifndef COMM_MPI_MPI_LIBRARY_H_
#define COMM_MPI_MPI_LIBRARY_H_

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace troupe::comm::internal {

struct MpiLibrary {
  decltype(&MPI_Initialized) Initialized;
  decltype(&MPI_Finalized) Finalized;
  decltype(&MPI_Init_thread) Init_thread;
  decltype(&MPI_Query_thread) Query_thread;
  decltype(&MPI_Finalize) Finalize;
  decltype(&MPI_Comm_dup) Comm_dup;
  decltype(&MPI_Comm_rank) Comm_rank;
  decltype(&MPI_Comm_size) Comm_size;
  decltype(&MPI_Comm_set_errhandler) Comm_set_errhandler;
  decltype(&MPI_Error_string) Error_string;
  decltype(&MPI_Isend) Isend;
  decltype(&MPI_Irecv) Irecv;
  decltype(&MPI_Test) Test;
  decltype(&MPI_Get_count) Get_count;
  decltype(&MPI_Cancel) Cancel;
  decltype(&MPI_Get_library_version) Get_library_version;

  MPI_Comm world;
  MPI_Datatype byte;
  MPI_Errhandler errors_return;

  // Loads the library.
  //   kNotFound: names what is missing, and what to install.
  static absl::StatusOr<MpiLibrary> Load();

  // Returns "Open MPI v4.1.4"; may be called before MPI begins.
  std::string Version() const;

  // Returns ok for MPI_SUCCESS, otherwise kUnavailable with the library's text.
  absl::Status ToStatus(int code, const char* what) const;
};

}  // namespace troupe::comm::internal

#endif  // COMM_MPI_MPI_LIBRARY_H_
