#include "data/cifar10.h"

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/foreign_format.h"

namespace troupe::data {
namespace {

constexpr std::int64_t kPlane = kCifar10Side * kCifar10Side;
constexpr std::int64_t kChannels = 3;
// Folders in which the archive is unpacked, below the one that is given.
constexpr const char* kFoldersOfArchive[] = {
    "cifar-10-batches-bin", "cifar-10-binary/cifar-10-batches-bin"};

std::vector<std::string> FilesOf(Cifar10Part part) {
  if (part == Cifar10Part::kTest) return {"test_batch.bin"};
  return {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
          "data_batch_4.bin", "data_batch_5.bin"};
}

// Returns the error of a file that has something else than records. `found`
// names the first sign of that.
absl::Status NotRecords(absl::Span<const std::uint8_t> bytes,
                        absl::string_view name, absl::string_view found) {
  TROUPE_RETURN_IF_ERROR(base::RefuseForeignFormat(
      absl::string_view(reinterpret_cast<const char*>(bytes.data()),
                        bytes.size()),
      name, "not records of CIFAR-10's binary version"));
  return absl::DataLossError(
      absl::StrCat(name, ": ", found,
                   "; replace it by a file of CIFAR-10's binary version"));
}

// Returns the error if `folder` has no file of the binary version.
absl::Status NoFiles(base::FileSystem& files, const std::string& folder,
                     const std::string& looked_for) {
  const auto has = [&](absl::string_view name) {
    return files.Exists(base::JoinPath(folder, name));
  };
  std::string found = absl::StrCat("no ", looked_for);
  absl::StatusCode code = absl::StatusCode::kNotFound;
  if (has("cifar-10-batches-py") || has("data_batch_1")) {
    code = absl::StatusCode::kInvalidArgument;
    found = absl::StrCat(folder,
                         " has CIFAR-10's python version "
                         "(cifar-10-batches-py), which is not read");
  } else if (has("cifar-100-binary") || has("cifar-100-python")) {
    code = absl::StatusCode::kInvalidArgument;
    found = absl::StrCat(folder, " has CIFAR-100, which is not read");
  }
  return absl::Status(
      code, absl::StrCat(found,
                         "; unpack cifar-10-binary.tar.gz (CIFAR-10's "
                         "binary version) there"));
}

// Returns the files of `part`, with their folder.
std::vector<std::string> PathsOf(base::FileSystem& files,
                                 const std::string& folder, Cifar10Part part) {
  std::string where = folder;
  for (const char* name : kFoldersOfArchive) {
    const std::string below = base::JoinPath(folder, name);
    if (where == folder && files.Exists(below)) where = below;
  }
  std::vector<std::string> paths;
  for (const std::string& file : FilesOf(part)) {
    paths.push_back(base::JoinPath(where, file));
  }
  return paths;
}

absl::Status CheckRecords(absl::Span<const std::uint8_t> bytes,
                          absl::string_view name) {
  const std::int64_t size = static_cast<std::int64_t>(bytes.size());
  if (size == 0 || size % kCifar10RecordBytes != 0) {
    return NotRecords(bytes, name,
                      absl::StrCat("truncated at byte ", size,
                                   ": records have ", kCifar10RecordBytes,
                                   " bytes, the last one begins at byte ",
                                   size - size % kCifar10RecordBytes));
  }
  for (std::int64_t i = 0; i < size; i += kCifar10RecordBytes) {
    if (bytes[i] >= kCifar10Classes) {
      return NotRecords(bytes, name,
                        absl::StrCat("label ", bytes[i], " at byte ", i,
                                     " is not below ", kCifar10Classes));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<float> Cifar10Mean() { return {0.4914f, 0.4822f, 0.4465f}; }

std::vector<float> Cifar10Stddev() { return {0.2470f, 0.2435f, 0.2616f}; }

absl::Status ParseCifar10(absl::Span<const std::uint8_t> bytes,
                          absl::string_view name, ByteImages& images) {
  TROUPE_RETURN_IF_ERROR(CheckRecords(bytes, name));
  images.shape = {kCifar10Side, kCifar10Side, kChannels};
  images.num_classes = kCifar10Classes;
  const std::size_t records = bytes.size() / kCifar10RecordBytes;
  std::size_t out = images.pixels.size();
  images.pixels.resize(out + records * kPlane * kChannels);
  for (std::size_t record = 0; record < records; ++record) {
    const std::uint8_t* label = bytes.data() + record * kCifar10RecordBytes;
    const std::uint8_t* planes = label + 1;
    images.labels.push_back(*label);
    for (std::int64_t i = 0; i < kPlane; ++i) {
      for (std::int64_t c = 0; c < kChannels; ++c) {
        images.pixels[out++] = planes[c * kPlane + i];
      }
    }
  }
  return absl::OkStatus();
}

bool HasCifar10(base::FileSystem& files, const std::string& folder,
                Cifar10Part part) {
  for (const std::string& path : PathsOf(files, folder, part)) {
    if (files.Exists(path)) return true;
  }
  return false;
}

absl::StatusOr<ByteImages> ReadCifar10(base::FileSystem& files,
                                       const std::string& folder,
                                       Cifar10Part part) {
  ByteImages images;
  for (const std::string& path : PathsOf(files, folder, part)) {
    if (!files.Exists(path)) return NoFiles(files, folder, path);
    TROUPE_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> bytes,
                            base::ReadBytes(files, path, kCifar10BytesMax));
    TROUPE_RETURN_IF_ERROR(ParseCifar10(bytes, path, images));
  }
  return images;
}

}  // namespace troupe::data
