#include "nn/serialize/torch/zip_archive.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/serialize/torch/zip_format.h"

namespace troupe::nn {
namespace {

// A byte of deflate stands for at most 258 / 2 * 8 bytes.
constexpr std::int64_t kInflationMax = 1032;
constexpr std::size_t kChunkBytes = 1 << 16;

absl::Status ZipDamaged(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("is a damaged zip archive: ", what));
}

template <typename T>
T ReadField(absl::string_view bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

absl::StatusOr<std::string> ReadBytesAt(const base::ReadableFile& file,
                                        std::int64_t offset,
                                        std::int64_t count) {
  if (offset < 0 || count < 0 || offset > file.size() ||
      count > file.size() - offset) {
    return ZipDamaged("it points beyond its end");
  }
  std::string bytes(count, '\0');
  TROUPE_RETURN_IF_ERROR(file.ReadAt(offset, absl::MakeSpan(bytes)));
  return bytes;
}

struct Directory {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
};

// Reads the end of a zip64 archive, if the locator before `end` says that there
// is one.
absl::Status ReadEnd64(const base::ReadableFile& file, std::int64_t end,
                       Directory& directory) {
  if (end < kZipLocator64Bytes) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(
      const std::string locator,
      ReadBytesAt(file, end - kZipLocator64Bytes, kZipLocator64Bytes));
  if (ReadField<std::uint32_t>(locator, 0) != kZipLocator64Mark) {
    return absl::OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(
      const std::string end64,
      ReadBytesAt(file, ReadField<std::int64_t>(locator, 8), kZipEnd64Bytes));
  if (ReadField<std::uint32_t>(end64, 0) != kZipEnd64Mark) {
    return ZipDamaged("its end is not where it should be");
  }
  directory.bytes = ReadField<std::int64_t>(end64, 40);
  directory.offset = ReadField<std::int64_t>(end64, 48);
  return absl::OkStatus();
}

absl::StatusOr<Directory> FindDirectory(const base::ReadableFile& file) {
  const std::int64_t tail_bytes =
      std::min<std::int64_t>(file.size(), kZipEndBytes + kZipCommentBytesMax);
  const std::int64_t tail_begin = file.size() - tail_bytes;
  TROUPE_ASSIGN_OR_RETURN(const std::string tail,
                          ReadBytesAt(file, tail_begin, tail_bytes));
  for (std::int64_t at = tail_bytes - kZipEndBytes; at >= 0; --at) {
    if (ReadField<std::uint32_t>(tail, at) != kZipEndMark) continue;
    Directory directory;
    directory.bytes = ReadField<std::uint32_t>(tail, at + 12);
    directory.offset = ReadField<std::uint32_t>(tail, at + 16);
    TROUPE_RETURN_IF_ERROR(ReadEnd64(file, tail_begin + at, directory));
    return directory;
  }
  return ZipDamaged("its end is missing, as of a file that was cut off");
}

// Replaces the fields of an entry that 32 bits cannot hold.
absl::Status ReadExtra64(absl::string_view extra, ZipEntry& entry) {
  while (extra.size() >= 4) {
    const auto kind = ReadField<std::uint16_t>(extra, 0);
    const std::size_t size = ReadField<std::uint16_t>(extra, 2);
    extra.remove_prefix(4);
    if (size > extra.size()) return ZipDamaged("an extra field is cut off");
    if (kind == kZip64Field) {
      absl::string_view fields = extra.substr(0, size);
      for (std::int64_t* field :
           {&entry.bytes, &entry.packed_bytes, &entry.header}) {
        if (*field != kZipIn64) continue;
        if (fields.size() < sizeof(*field)) {
          return ZipDamaged("an extra field is too short");
        }
        *field = ReadField<std::int64_t>(fields, 0);
        fields.remove_prefix(sizeof(*field));
      }
    }
    extra.remove_prefix(size);
  }
  return absl::OkStatus();
}

absl::Status CheckEntry(const ZipEntry& entry, std::uint16_t flags,
                        std::uint16_t method, std::int64_t file_bytes) {
  if ((flags & kZipEncryptedFlag) != 0) {
    return ZipDamaged("it is encrypted, which is not read");
  }
  if (method != kZipStored && method != kZipDeflated) {
    return ZipDamaged(absl::StrCat("it is packed by method ", method,
                                   ", of which only 0 and 8 are read"));
  }
  if (entry.packed_bytes < 0 || entry.packed_bytes > file_bytes ||
      entry.bytes < 0 || entry.bytes > entry.packed_bytes * kInflationMax ||
      (!entry.deflated && entry.bytes != entry.packed_bytes)) {
    return ZipDamaged("the length of an entry cannot be true");
  }
  return absl::OkStatus();
}

// Reads an entry of the directory, and removes it from `bytes`.
absl::StatusOr<ZipEntry> TakeEntry(std::int64_t file_bytes,
                                   absl::string_view& bytes) {
  if (bytes.size() < static_cast<std::size_t>(kZipDirectoryEntryBytes) ||
      ReadField<std::uint32_t>(bytes, 0) != kZipDirectoryEntryMark) {
    return ZipDamaged("its directory is cut off");
  }
  const std::size_t name_bytes = ReadField<std::uint16_t>(bytes, 28);
  const std::size_t extra_bytes = ReadField<std::uint16_t>(bytes, 30);
  const std::size_t comment_bytes = ReadField<std::uint16_t>(bytes, 32);
  const std::size_t all =
      kZipDirectoryEntryBytes + name_bytes + extra_bytes + comment_bytes;
  if (bytes.size() < all) return ZipDamaged("its directory is cut off");
  const auto flags = ReadField<std::uint16_t>(bytes, 8);
  const auto method = ReadField<std::uint16_t>(bytes, 10);
  ZipEntry entry;
  entry.deflated = method == kZipDeflated;
  entry.packed_bytes = ReadField<std::uint32_t>(bytes, 20);
  entry.bytes = ReadField<std::uint32_t>(bytes, 24);
  entry.header = ReadField<std::uint32_t>(bytes, 42);
  entry.name = std::string(bytes.substr(kZipDirectoryEntryBytes, name_bytes));
  TROUPE_RETURN_IF_ERROR(ReadExtra64(
      bytes.substr(kZipDirectoryEntryBytes + name_bytes, extra_bytes), entry));
  TROUPE_RETURN_IF_ERROR(CheckEntry(entry, flags, method, file_bytes));
  bytes.remove_prefix(all);
  return entry;
}

// Inflates a part of an entry.
class Inflater {
 public:
  Inflater() { ok_ = inflateInit2(&stream_, -MAX_WBITS) == Z_OK; }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Skips `skip` bytes, then fills `into`.
  absl::Status Read(const base::ReadableFile& file, std::int64_t begin,
                    std::int64_t packed_bytes, std::int64_t skip,
                    absl::Span<char> into) {
    if (!ok_) return absl::ResourceExhaustedError("needs memory to inflate");
    std::vector<char> packed(kChunkBytes), skipped(kChunkBytes);
    while (skip > 0 || !into.empty()) {
      if (stream_.avail_in == 0 && packed_bytes > 0) {
        const std::int64_t count =
            std::min<std::int64_t>(packed_bytes, kChunkBytes);
        TROUPE_RETURN_IF_ERROR(
            file.ReadAt(begin, absl::MakeSpan(packed).first(count)));
        begin += count;
        packed_bytes -= count;
        stream_.next_in = reinterpret_cast<Bytef*>(packed.data());
        stream_.avail_in = static_cast<uInt>(count);
      }
      const std::int64_t wanted = std::min<std::int64_t>(
          skip > 0 ? skip : static_cast<std::int64_t>(into.size()),
          kChunkBytes);
      stream_.next_out =
          reinterpret_cast<Bytef*>(skip > 0 ? skipped.data() : into.data());
      stream_.avail_out = static_cast<uInt>(wanted);
      const int result = inflate(&stream_, Z_NO_FLUSH);
      const std::int64_t made = wanted - stream_.avail_out;
      if ((result != Z_OK && result != Z_STREAM_END) || made == 0) {
        return ZipDamaged("an entry cannot be inflated");
      }
      if (skip > 0) {
        skip -= made;
      } else {
        into.remove_prefix(made);
      }
    }
    return absl::OkStatus();
  }

 private:
  z_stream stream_ = {};
  bool ok_ = false;
};

}  // namespace

absl::StatusOr<ZipArchive> ZipArchive::Open(const base::ReadableFile& file) {
  TROUPE_ASSIGN_OR_RETURN(const Directory directory, FindDirectory(file));
  if (directory.bytes > kZipDirectoryBytesMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("is a zip archive with a directory of ", directory.bytes,
                     " bytes, more than ", kZipDirectoryBytesMax));
  }
  TROUPE_ASSIGN_OR_RETURN(const std::string bytes,
                          ReadBytesAt(file, directory.offset, directory.bytes));
  ZipArchive archive(file);
  for (absl::string_view left = bytes; !left.empty();) {
    TROUPE_ASSIGN_OR_RETURN(ZipEntry entry, TakeEntry(file.size(), left));
    archive.index_.emplace(entry.name, archive.entries_.size());
    archive.entries_.push_back(std::move(entry));
  }
  return archive;
}

const ZipEntry* ZipArchive::Find(absl::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &entries_[found->second];
}

absl::StatusOr<std::int64_t> ZipArchive::DataOf(const ZipEntry& entry) const {
  TROUPE_ASSIGN_OR_RETURN(
      const std::string header,
      ReadBytesAt(*file_, entry.header, kZipLocalHeaderBytes));
  if (ReadField<std::uint32_t>(header, 0) != kZipLocalHeaderMark) {
    return ZipDamaged("an entry is not where its directory says");
  }
  const std::int64_t begin = entry.header + kZipLocalHeaderBytes +
                             ReadField<std::uint16_t>(header, 26) +
                             ReadField<std::uint16_t>(header, 28);
  if (begin > file_->size() || entry.packed_bytes > file_->size() - begin) {
    return ZipDamaged("an entry ends beyond the file");
  }
  return begin;
}

absl::Status ZipArchive::ReadAt(const ZipEntry& entry, std::int64_t offset,
                                absl::Span<char> into) const {
  const auto count = static_cast<std::int64_t>(into.size());
  if (offset < 0 || offset > entry.bytes || count > entry.bytes - offset) {
    return ZipDamaged("an entry is too short");
  }
  TROUPE_ASSIGN_OR_RETURN(const std::int64_t begin, DataOf(entry));
  if (!entry.deflated) return file_->ReadAt(begin + offset, into);
  Inflater inflater;
  return inflater.Read(*file_, begin, entry.packed_bytes, offset, into);
}

absl::StatusOr<std::string> ZipArchive::ReadAll(const ZipEntry& entry,
                                                std::int64_t bytes_max) const {
  if (entry.bytes > bytes_max) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "has an entry of ", entry.bytes, " bytes, more than ", bytes_max));
  }
  std::string bytes(entry.bytes, '\0');
  TROUPE_RETURN_IF_ERROR(ReadAt(entry, 0, absl::MakeSpan(bytes)));
  return bytes;
}

}  // namespace troupe::nn
