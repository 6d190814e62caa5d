#include "tools/trainer/metrics/record_file.h"

#include <boost/crc.hpp>

#include "base/check.h"

namespace troupe::tools {
namespace {

// Castagnoli's polynomial, reflected.
using Crc32c =
    boost::crc_optimal<32, 0x1edc6f41, 0xffffffff, 0xffffffff, true, true>;

template <typename Unsigned>
std::string LittleEndian(Unsigned value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(value); ++i) {
    bytes += static_cast<char>(value >> (8 * i));
  }
  return bytes;
}

}  // namespace

std::uint32_t RecordChecksum(absl::string_view bytes) {
  Crc32c crc;
  crc.process_bytes(bytes.data(), bytes.size());
  const std::uint32_t sum = crc.checksum();
  return ((sum >> 15) | (sum << 17)) + 0xa282ead8u;
}

absl::StatusOr<RecordFile> RecordFile::Create(base::FileSystem& files,
                                              const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<base::WritableFile> file,
                          files.Create(path));
  return RecordFile(std::move(file));
}

absl::Status RecordFile::Append(absl::string_view record) {
  const std::string length = LittleEndian(std::uint64_t{record.size()});
  std::string bytes = length + LittleEndian(RecordChecksum(length));
  bytes.append(record.data(), record.size());
  bytes += LittleEndian(RecordChecksum(record));
  return file_->Append(bytes);
}

}  // namespace troupe::tools
