#include "comm/mpi/mpi_library.h"

#include <dlfcn.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace troupe::comm::internal {
namespace {

// Library of Open MPI 4: its binary interface does not change under that name.
constexpr char kLibrary[] = "libmpi.so.40";

// Finds symbols, and remembers the first missing one.
class Symbols {
 public:
  explicit Symbols(void* library) : library_(library) {}

  template <typename T>
  void Find(const char* name, T* to) {
    void* const found = ::dlsym(library_, name);
    if (found == nullptr && missing_.empty()) missing_ = name;
    *to = reinterpret_cast<T>(found);
  }
  const std::string& missing() const { return missing_; }

 private:
  void* const library_;
  std::string missing_;
};

}  // namespace

absl::StatusOr<MpiLibrary> MpiLibrary::Load() {
  // Open MPI's own plugins look for its symbols among the global ones. The
  // library is never closed: it leaves threads and handlers behind.
  void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    return absl::NotFoundError(absl::StrCat(
        "Open MPI is not here (", ::dlerror(), "): install openmpi-bin"));
  }
  Symbols symbols(library);
  MpiLibrary mpi{};
  symbols.Find("MPI_Initialized", &mpi.Initialized);
  symbols.Find("MPI_Finalized", &mpi.Finalized);
  symbols.Find("MPI_Init_thread", &mpi.Init_thread);
  symbols.Find("MPI_Query_thread", &mpi.Query_thread);
  symbols.Find("MPI_Finalize", &mpi.Finalize);
  symbols.Find("MPI_Comm_dup", &mpi.Comm_dup);
  symbols.Find("MPI_Comm_rank", &mpi.Comm_rank);
  symbols.Find("MPI_Comm_size", &mpi.Comm_size);
  symbols.Find("MPI_Comm_set_errhandler", &mpi.Comm_set_errhandler);
  symbols.Find("MPI_Error_string", &mpi.Error_string);
  symbols.Find("MPI_Isend", &mpi.Isend);
  symbols.Find("MPI_Irecv", &mpi.Irecv);
  symbols.Find("MPI_Test", &mpi.Test);
  symbols.Find("MPI_Get_count", &mpi.Get_count);
  symbols.Find("MPI_Cancel", &mpi.Cancel);
  symbols.Find("MPI_Get_library_version", &mpi.Get_library_version);
  // The objects behind MPI_COMM_WORLD, MPI_BYTE and MPI_ERRORS_RETURN.
  symbols.Find("ompi_mpi_comm_world", &mpi.world);
  symbols.Find("ompi_mpi_byte", &mpi.byte);
  symbols.Find("ompi_mpi_errors_return", &mpi.errors_return);
  if (symbols.missing().empty()) return mpi;
  return absl::NotFoundError(
      absl::StrCat(kLibrary, " has no ", symbols.missing(),
                   ", so it is not Open MPI 4; install that"));
}

std::string MpiLibrary::Version() const {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  if (Get_library_version(text, &length) != MPI_SUCCESS) return "Open MPI";
  // "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, ..."
  const std::string all(text, length);
  return all.substr(0, all.find(','));
}

absl::Status MpiLibrary::ToStatus(int code, const char* what) const {
  if (code == MPI_SUCCESS) return absl::OkStatus();
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (Error_string(code, text, &length) != MPI_SUCCESS) length = 0;
  return absl::UnavailableError(absl::StrCat(
      what, ": ",
      length > 0 ? std::string(text, length) : absl::StrCat("error ", code)));
}

}  // namespace troupe::comm::internal
