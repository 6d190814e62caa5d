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

LinkPair PairOver(const std::shared_ptr<internal::MpiContext>& context, int a,
                  int b) {
  LinkPair pair;
  static int next_tag = 0;
  internal::MpiLinkOptions options;
  options.address = "the other thread";
  options.rank = context->rank();
  options.peer = b;
  options.send_tag = next_tag;
  options.receive_tag = next_tag + 3;
  pair.a = internal::MakeMpiLink(context, options);
  options.peer = a;
  options.send_tag = next_tag + 3;
  options.receive_tag = next_tag;
  pair.b = internal::MakeMpiLink(context, options);
  next_tag += 6;
  return pair;
}

}  // namespace

LinkPair MakeMpiPair() {
  // MPI begins with the first context, and does not end with another.
  if (Context() == nullptr) return {};
  const auto started = internal::MpiContext::Start();
  return started.ok() ? PairOver(*started, 0, 1) : LinkPair();
}

LinkPair MakeMpiPairOf(int a, int b) {
  return Context() == nullptr ? LinkPair() : PairOver(Context(), a, b);
}

}  // namespace troupe::comm
