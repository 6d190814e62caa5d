// The id of an NCCL group (ncclUniqueId), by which its ranks find each other:
// the process with rank 0 makes it and publishes it in a store, where the
// others read it.
//
//   TROUPE_ASSIGN_OR_RETURN(NcclId id, NcclId::Exchange(options, store));
//   TROUPE_ASSIGN_OR_RETURN(const bool found, id.Find());  // never waits
//   if (found) Init(id.value());
//
// Threads: one at a time for each copy.

#ifndef COMM_NCCL_NCCL_ID_H_
#define COMM_NCCL_NCCL_ID_H_

#include <nccl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "comm/nccl/nccl_backend.h"
#include "comm/store.h"

namespace troupe::comm::internal {

class NcclId {
 public:
  // Makes the id and publishes it, if rank 0 lives here. Otherwise waits for
  // it, unless options.later_id is set, where Find() looks for it.
  //   kDeadlineExceeded: see Late().
  //   kInvalidArgument: another version of NCCL has made it.
  static absl::StatusOr<NcclId> Exchange(const NcclGroupOptions& options,
                                         Store& store);
  // Returns the error of a group whose id has not come in time.
  static absl::Status Late(const NcclGroupOptions& options);

  // Returns whether the id is known, after a look into options.later_id if it
  // was not. Errors: those of Exchange() and of the store.
  absl::StatusOr<bool> Find();
  bool found() const { return id_.has_value(); }
  const ncclUniqueId& value() const { return *id_; }

 private:
  NcclId(std::string group, std::string key)
      : group_(std::move(group)), key_(std::move(key)) {}

  // Makes the id.
  absl::Status Make();
  // Takes an id that another process has published.
  absl::Status Read(const std::string& text);

  std::string group_;  // name, for errors
  std::string key_;    // name of the id in the store
  std::shared_ptr<Store> later_;
  std::optional<ncclUniqueId> id_;
};

}  // namespace troupe::comm::internal

#endif  // COMM_NCCL_NCCL_ID_H_
