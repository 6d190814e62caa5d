// A program that links this file gets NCCL from MakeNcclGroup().

#include "comm/nccl/nccl_backend.h"
#include "comm/nccl/nccl_group.h"

namespace troupe::comm {
namespace {

[[maybe_unused]] const bool kRegistered = [] {
  SetNcclBackend(OpenNcclGroup);
  return true;
}();

}  // namespace
}  // namespace troupe::comm
