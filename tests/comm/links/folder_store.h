// A Store in a folder, for processes that share nothing else. Each key is a
// file; Set() renames it into place, so that readers never see half of a value.
//
//   FolderStore store;          // before fork(): both see the same folder
//   store.Set("links/0", "127.0.0.1:4711");
//
// The folder is deleted when the store is destroyed in the process that made
// it.

#ifndef TESTS_COMM_LINKS_FOLDER_STORE_H_
#define TESTS_COMM_LINKS_FOLDER_STORE_H_

#include <sys/types.h>

#include <string>

#include "comm/store.h"

namespace troupe::comm {

class FolderStore : public Store {
 public:
  FolderStore();
  ~FolderStore() override;
  FolderStore(const FolderStore&) = delete;
  FolderStore& operator=(const FolderStore&) = delete;

  absl::Status Set(const std::string& key, std::string value) override;
  absl::StatusOr<std::string> Get(const std::string& key,
                                  absl::Duration timeout) override;

 private:
  std::string PathOf(const std::string& key) const;

  const pid_t owner_;
  const std::string folder_;
};

}  // namespace troupe::comm

#endif  // TESTS_COMM_LINKS_FOLDER_STORE_H_
