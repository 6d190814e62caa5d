#include "nn/serialize/torch/torch_storages.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/check.h"
#include "nn/serialize/torch/pickle.h"
#include "nn/serialize/torch/zip_archive.h"

namespace troupe::nn {
namespace {

constexpr absl::string_view kZipHead = "PK\3\4";
constexpr absl::string_view kPickleEntry = "/data.pkl";
constexpr std::int64_t kByteOrderBytesMax = 16;

// First part of a stream that is tried; it grows until the pickles are in it.
constexpr std::int64_t kFirstPartBytes = std::int64_t{1} << 20;
constexpr std::int64_t kPartGrowth = 4;
constexpr int kPicklesBeforeObject = 3;

absl::Status Lacks(absl::string_view key) {
  return absl::DataLossError(
      absl::StrCat("is damaged: it has no storage ", PrintableName(key)));
}

class ZipStorages : public TorchStorages {
 public:
  ZipStorages(std::unique_ptr<const base::ReadableFile> file, ZipArchive zip,
              std::string prefix)
      : file_(std::move(file)),
        zip_(std::move(zip)),
        prefix_(std::move(prefix)) {}

  absl::StatusOr<std::int64_t> BytesOf(const std::string& key) const override {
    const ZipEntry* const entry = Find(key);
    if (entry == nullptr) return Lacks(key);
    return entry->bytes;
  }
  absl::Status ReadAt(const std::string& key, std::int64_t offset,
                      absl::Span<char> into) const override {
    const ZipEntry* const entry = Find(key);
    if (entry == nullptr) return Lacks(key);
    return zip_.ReadAt(*entry, offset, into);
  }

 private:
  const ZipEntry* Find(const std::string& key) const {
    return zip_.Find(absl::StrCat(prefix_, "/data/", key));
  }

  const std::unique_ptr<const base::ReadableFile> file_;
  const ZipArchive zip_;
  const std::string prefix_;
};

class StreamStorages : public TorchStorages {
 public:
  struct Place {
    std::int64_t begin = 0;
    std::int64_t bytes = 0;
  };
  using Places = absl::flat_hash_map<std::string, Place>;

  StreamStorages(std::unique_ptr<const base::ReadableFile> file, Places places)
      : file_(std::move(file)), places_(std::move(places)) {}

  absl::StatusOr<std::int64_t> BytesOf(const std::string& key) const override {
    const auto place = places_.find(key);
    if (place == places_.end()) return Lacks(key);
    return place->second.bytes;
  }
  absl::Status ReadAt(const std::string& key, std::int64_t offset,
                      absl::Span<char> into) const override {
    const auto place = places_.find(key);
    if (place == places_.end()) return Lacks(key);
    const auto count = static_cast<std::int64_t>(into.size());
    if (offset < 0 || count > place->second.bytes - offset) return Lacks(key);
    return file_->ReadAt(place->second.begin + offset, into);
  }

 private:
  const std::unique_ptr<const base::ReadableFile> file_;
  const Places places_;
};

// Returns the name before "/data.pkl".
absl::StatusOr<std::string> PrefixIn(const ZipArchive& zip) {
  bool is_script = false;
  for (const ZipEntry& entry : zip.entries()) {
    is_script = is_script || absl::EndsWith(entry.name, "/constants.pkl");
  }
  if (is_script) {
    return absl::NotFoundError(
        "is an archive of TorchScript; save the weights in Python: "
        "torch.save(torch.jit.load(path).state_dict(), other_path)");
  }
  for (const ZipEntry& entry : zip.entries()) {
    absl::string_view name = entry.name;
    if (absl::ConsumeSuffix(&name, kPickleEntry)) return std::string(name);
  }
  return absl::NotFoundError(
      "is a zip archive without a data.pkl, which torch.save would have "
      "written; unpack it");
}

absl::StatusOr<TorchContents> OpenZip(
    std::unique_ptr<const base::ReadableFile> file) {
  TROUPE_ASSIGN_OR_RETURN(ZipArchive zip, ZipArchive::Open(*file));
  TROUPE_ASSIGN_OR_RETURN(std::string prefix, PrefixIn(zip));
  if (const ZipEntry* order = zip.Find(absl::StrCat(prefix, "/byteorder"))) {
    TROUPE_ASSIGN_OR_RETURN(const std::string text,
                            zip.ReadAll(*order, kByteOrderBytesMax));
    if (text != "little") {
      return absl::DataLossError(
          "has numbers in the byte order of another machine; save it on one "
          "with little-endian numbers");
    }
  }
  const ZipEntry* const entry = zip.Find(absl::StrCat(prefix, kPickleEntry));
  TROUPE_ASSIGN_OR_RETURN(const std::string pickle,
                          zip.ReadAll(*entry, kPickleBytesMax));
  TROUPE_ASSIGN_OR_RETURN(const PickleTree tree, ParsePickle(pickle));
  TorchContents contents;
  TROUPE_ASSIGN_OR_RETURN(contents.tensors, FindStateDict(tree));
  contents.storages = std::make_unique<ZipStorages>(
      std::move(file), std::move(zip), std::move(prefix));
  return contents;
}

// Finds the storages behind the pickles of a stream.
absl::StatusOr<StreamStorages::Places> FindPlaces(
    const base::ReadableFile& file, std::int64_t at, const PickleTree& object,
    const PickleTree& keys) {
  absl::flat_hash_map<std::string, TorchStorage> storages;
  for (PickleId id = 0; id < object.values.size(); ++id) {
    if (object[id].kind != PickleKind::kExternal) continue;
    TROUPE_ASSIGN_OR_RETURN(TorchStorage storage, StorageOf(object, id));
    storages.emplace(storage.key, std::move(storage));
  }
  StreamStorages::Places places;
  for (PickleId id : keys[keys.root].items) {
    const std::string key(keys.TextOf(id));
    const auto storage = storages.find(key);
    if (storage == storages.end()) return Lacks(key);
    if (storage->second.item_bytes == 0) {
      return absl::DataLossError(absl::StrCat(
          "has a storage of an unknown type, ",
          PrintableName(storage->second.kind), "; convert it in Python"));
    }
    std::int64_t items = 0;
    if (file.size() - at < static_cast<std::int64_t>(sizeof(items))) {
      return absl::DataLossError("is damaged: a storage is missing");
    }
    TROUPE_RETURN_IF_ERROR(
        file.ReadAt(at, {reinterpret_cast<char*>(&items), sizeof(items)}));
    at += sizeof(items);
    if (items < 0 || items > (file.size() - at) / storage->second.item_bytes) {
      return absl::DataLossError("is damaged: a storage ends beyond the file");
    }
    const std::int64_t bytes = items * storage->second.item_bytes;
    places[key] = {at, bytes};
    at += bytes;
  }
  return places;
}

absl::Status CheckByteOrder(const PickleTree& facts) {
  const PickleValue& root = facts[facts.root];
  for (std::size_t i = 0; i + 1 < root.items.size(); i += 2) {
    const PickleValue& value = facts[root.items[i + 1]];
    if (facts.TextOf(root.items[i]) == "little_endian" && value.number == 0) {
      return absl::DataLossError(
          "has numbers in the byte order of another machine");
    }
  }
  return absl::OkStatus();
}

// Parses the pickles of a stream, of which `part` is the beginning.
absl::StatusOr<TorchContents> ParseStream(
    absl::string_view part, std::unique_ptr<const base::ReadableFile>& file) {
  std::size_t at = 0;
  for (int i = 0; i < kPicklesBeforeObject; ++i) {
    TROUPE_ASSIGN_OR_RETURN(const PickleTree tree,
                            ParsePickle(part.substr(at)));
    // A pickle of another program has its object first.
    if (i == 0 && tree[tree.root].kind != PickleKind::kOpaque) {
      return absl::NotFoundError(absl::StrCat(
          "is a pickle of Python, of ", tree.Describe(tree.root),
          ", and not from torch.save; save the model's state dict by "
          "torch.save"));
    }
    if (i == 2) TROUPE_RETURN_IF_ERROR(CheckByteOrder(tree));
    at += tree.bytes;
  }
  TROUPE_ASSIGN_OR_RETURN(const PickleTree object,
                          ParsePickle(part.substr(at)));
  at += object.bytes;
  TROUPE_ASSIGN_OR_RETURN(const PickleTree keys, ParsePickle(part.substr(at)));
  at += keys.bytes;
  TorchContents contents;
  TROUPE_ASSIGN_OR_RETURN(contents.tensors, FindStateDict(object));
  TROUPE_ASSIGN_OR_RETURN(
      StreamStorages::Places places,
      FindPlaces(*file, static_cast<std::int64_t>(at), object, keys));
  contents.storages =
      std::make_unique<StreamStorages>(std::move(file), std::move(places));
  return contents;
}

absl::StatusOr<TorchContents> OpenStream(
    std::unique_ptr<const base::ReadableFile> file) {
  constexpr auto kPartBytesMax = static_cast<std::int64_t>(kPickleBytesMax);
  const std::int64_t limit = std::min(file->size(), kPartBytesMax);
  for (std::int64_t bytes = kFirstPartBytes;; bytes *= kPartGrowth) {
    std::string part(std::min(bytes, limit), '\0');
    TROUPE_RETURN_IF_ERROR(file->ReadAt(0, absl::MakeSpan(part)));
    absl::StatusOr<TorchContents> contents = ParseStream(part, file);
    if (absl::IsOutOfRange(contents.status()) && bytes < limit) continue;
    return contents;
  }
}

}  // namespace

absl::StatusOr<TorchContents> OpenTorchContents(
    std::unique_ptr<const base::ReadableFile> file) {
  std::string head(kZipHead.size(), '\0');
  if (file->size() < static_cast<std::int64_t>(head.size())) {
    return absl::DataLossError("is too short for a file of torch.save");
  }
  TROUPE_RETURN_IF_ERROR(file->ReadAt(0, absl::MakeSpan(head)));
  return head == kZipHead ? OpenZip(std::move(file))
                          : OpenStream(std::move(file));
}

}  // namespace troupe::nn
