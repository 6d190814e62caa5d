// A file system with one file, in memory, under whatever path, for fuzzers.
//
//   OneFile files("contents");
//   auto file = files.Open("any");

#ifndef TESTS_NN_SERIALIZE_ONE_FILE_H_
#define TESTS_NN_SERIALIZE_ONE_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/files/file_system.h"
#include "gtest/gtest.h"

namespace troupe::nn {

class OneFile : public base::PosixFileSystem {
 public:
  explicit OneFile(std::string contents) : contents_(std::move(contents)) {}

  absl::StatusOr<std::unique_ptr<base::ReadableFile>> Open(
      const std::string&) override {
    return std::make_unique<File>(contents_);
  }

 private:
  class File : public base::ReadableFile {
   public:
    explicit File(const std::string& contents) : contents_(contents) {}
    std::int64_t size() const override {
      return static_cast<std::int64_t>(contents_.size());
    }
    absl::Status ReadAt(std::int64_t offset,
                        absl::Span<char> into) const override {
      EXPECT_GE(offset, 0);
      EXPECT_LE(offset + static_cast<std::int64_t>(into.size()), size());
      contents_.copy(into.data(), into.size(), offset);
      return absl::OkStatus();
    }

   private:
    const std::string& contents_;
  };

  const std::string contents_;
};

}  // namespace troupe::nn

#endif  // TESTS_NN_SERIALIZE_ONE_FILE_H_
