// Reads zip archives (PKWARE's APPNOTE.TXT), with stored and deflated entries,
// also those of more than 4 GB (zip64).
//
//   TROUPE_ASSIGN_OR_RETURN(const ZipArchive zip, ZipArchive::Open(*file));
//   if (const ZipEntry* entry = zip.Find("archive/data.pkl")) {
//     TROUPE_ASSIGN_OR_RETURN(
//         std::string text, zip.ReadAll(*entry, /*bytes_max=*/1 << 20));
//   }
//
// The archive is not trusted: its directory is read with limits, offsets are
// checked against the file, nothing is inflated beyond the length of which the
// directory speaks, which is at most deflate's 1032 times the packed length.
// Checksums are not compared: PyTorch can leave them out.
//
// Errors are in words that complete "FILE ". Threads: any number may read.

#ifndef NN_SERIALIZE_TORCH_ZIP_ARCHIVE_H_
#define NN_SERIALIZE_TORCH_ZIP_ARCHIVE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/files/file_system.h"

namespace troupe::nn {

// Limit on the size of an archive's directory: that of a million entries.
inline constexpr std::int64_t kZipDirectoryBytesMax = std::int64_t{1} << 27;

struct ZipEntry {
  std::string name;
  bool deflated = false;
  std::int64_t packed_bytes = 0;
  std::int64_t bytes = 0;
  std::int64_t header = 0;  // offset of its local header in the file
};

class ZipArchive {
 public:
  // `file` must outlive the archive.
  //   kDataLoss: not a zip archive, damaged, encrypted, in several files, or
  //     packed by another method.
  static absl::StatusOr<ZipArchive> Open(const base::ReadableFile& file);

  const std::vector<ZipEntry>& entries() const { return entries_; }
  // Returns null if there is no entry of this name.
  const ZipEntry* Find(absl::string_view name) const;

  // Reads into all of `into`, from byte `offset` of the unpacked entry on. A
  // deflated entry is inflated from its beginning.
  absl::Status ReadAt(const ZipEntry& entry, std::int64_t offset,
                      absl::Span<char> into) const;
  //   kResourceExhausted: the entry has more than `bytes_max` bytes.
  absl::StatusOr<std::string> ReadAll(const ZipEntry& entry,
                                      std::int64_t bytes_max) const;

 private:
  explicit ZipArchive(const base::ReadableFile& file) : file_(&file) {}

  // Returns the offset of the entry's data in the file.
  absl::StatusOr<std::int64_t> DataOf(const ZipEntry& entry) const;

  const base::ReadableFile* file_;
  std::vector<ZipEntry> entries_;
  absl::flat_hash_map<std::string, std::size_t> index_;
};

}  // namespace troupe::nn

#endif  // NN_SERIALIZE_TORCH_ZIP_ARCHIVE_H_
