#include "tests/comm/links/mpi_pair.h"

#include <cstdlib>
#include <memory>

#include "comm/mpi/mpi_context.h"
#include "comm/mpi/mpi_link.h"

namespace troupe::comm {
namespace {

// Initializes MPI once; it is finalized with the process. Null if that failed.
const std::shared_ptr<internal::MpiContext>& Context() {
  static const auto* const context = [] {
    // An isolated singleton needs neither a daemon nor a network.
    ::setenv("OMPI_MCA_ess_singleton_isolated", "1", /*overwrite=*/1);
    ::setenv("OMPI_MCA_btl", "self", /*overwrite=*/1);
    auto started = internal::MpiContext::Start();
    return new std::shared_ptr<internal::MpiContext>(
        started.ok() ? *std::move(started) : nullptr);
  }();
  return *context;
}

}  // namespace

LinkPair MakeMpiPair() { return MakeMpiPairOf(0, 1); }

LinkPair MakeMpiPairOf(int a, int b) {
  LinkPair pair;
  if (Context() == nullptr) return pair;
  static int next_tag = 0;
  internal::MpiLinkOptions options;
  options.address = "the other thread";
  options.rank = Context()->rank();
  options.peer = b;
  options.send_tag = next_tag;
  options.receive_tag = next_tag + 2;
  pair.a = internal::MakeMpiLink(Context(), options);
  options.peer = a;
  options.send_tag = next_tag + 2;
  options.receive_tag = next_tag;
  pair.b = internal::MakeMpiLink(Context(), options);
  next_tag += 4;
  return pair;
}

}  // namespace troupe::comm
