// The disk and the training set of a node of a simulated cluster, either of
// which may fail at a chosen operation.
//
//   NodeFiles files(disk, is_gone, /*full_at=*/3);      // no 4th write
//   auto train = std::make_shared<NodeData>(good, /*bad_read=*/7);
//   files.was_full();       // whether a write has failed
//   train->was_bad();       // whether a read has
//
// Threads: one.

#ifndef TESTS_ACTORS_CLUSTER_NODE_FAULTS_H_
#define TESTS_ACTORS_CLUSTER_NODE_FAULTS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/files/intercepted_file_system.h"
#include "data/dataset.h"

namespace troupe::actors {

// The disk of a node. It fails once the node is gone, and may be full from one
// of its writes on.
class NodeFiles : public base::InterceptedFileSystem {
 public:
  // The disk is full from write `full_at` on; -1: never.
  NodeFiles(base::FileSystem& disk, std::function<bool()> is_gone, int full_at)
      : InterceptedFileSystem(disk, /*syncs=*/false),
        is_gone_(std::move(is_gone)),
        left_(full_at) {}

  bool was_full() const { return was_full_; }

 private:
  absl::Status BeforeChange(const char* verb, const std::string& path) override;
  absl::Status BeforeRead(const std::string&) override { return Check(); }
  absl::Status Check() const;

  const std::function<bool()> is_gone_;
  int left_;
  bool was_full_ = false;
};

// The training set of a node, of which a read may fail.
class NodeData : public data::Dataset {
 public:
  // Read `bad_read` fails; -1: none does.
  NodeData(data::DatasetPtr good, int bad_read)
      : Dataset(good->size(), good->spec()),
        good_(std::move(good)),
        bad_read_(bad_read) {}

  bool was_bad() const { return bad_read_ >= 0 && reads_ > bad_read_; }

 private:
  absl::Status Gather(absl::Span<const std::int64_t> indices,
                      std::int64_t epoch, const nn::Tensor& inputs,
                      const nn::Tensor& targets) const override;

  const data::DatasetPtr good_;
  const int bad_read_;
  mutable int reads_ = 0;
};

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_CLUSTER_NODE_FAULTS_H_
