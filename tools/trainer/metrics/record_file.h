// A file of TFRecords: byte strings, each with its length and checksums, so
// that a reader can detect a record that a crashed writer left incomplete.
//
//   TROUPE_ASSIGN_OR_RETURN(RecordFile file, RecordFile::Create(files, path));
//   TROUPE_RETURN_IF_ERROR(file.Append(event.SerializeAsString()));
//
// A record is: length (u64), its checksum (u32), the bytes, their checksum
// (u32), all little-endian. A checksum is a CRC-32C (Castagnoli), rotated right
// by 15 bits and increased by 0xa282ead8, as LevelDB and TensorFlow mask it.
//
// A record is appended in one write. Not thread-safe.

#ifndef TOOLS_TRAINER_METRICS_RECORD_FILE_H_
#define TOOLS_TRAINER_METRICS_RECORD_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/files/file_system.h"

namespace troupe::tools {

class RecordFile {
 public:
  static absl::StatusOr<RecordFile> Create(base::FileSystem& files,
                                           const std::string& path);
  absl::Status Append(absl::string_view record);

 private:
  explicit RecordFile(std::unique_ptr<base::WritableFile> file)
      : file_(std::move(file)) {}
  std::unique_ptr<base::WritableFile> file_;
};

// Returns the masked checksum of `bytes`.
std::uint32_t RecordChecksum(absl::string_view bytes);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_METRICS_RECORD_FILE_H_
