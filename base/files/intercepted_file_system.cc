#include "base/files/intercepted_file_system.h"

#include <utility>

#include "base/check.h"

namespace troupe::base {

class InterceptedFileSystem::Written : public WritableFile {
 public:
  Written(InterceptedFileSystem& owner, std::string path,
          std::unique_ptr<WritableFile> file)
      : owner_(owner), path_(std::move(path)), file_(std::move(file)) {}

  absl::Status Append(absl::string_view bytes) override {
    const absl::Status status = owner_.BeforeChange("append", path_);
    if (status.ok()) return file_->Append(bytes);
    file_->Append(bytes.substr(0, bytes.size() / 2)).IgnoreError();
    return status;
  }
  absl::Status Sync() override {
    TROUPE_RETURN_IF_ERROR(owner_.BeforeChange("sync", path_));
    return owner_.syncs_ ? file_->Sync() : absl::OkStatus();
  }
  absl::Status Close() override {
    TROUPE_RETURN_IF_ERROR(owner_.BeforeChange("close", path_));
    return file_->Close();
  }

 private:
  InterceptedFileSystem& owner_;
  const std::string path_;
  const std::unique_ptr<WritableFile> file_;
};

class InterceptedFileSystem::Shared : public SharedFile {
 public:
  Shared(InterceptedFileSystem& owner, std::string path,
         std::unique_ptr<SharedFile> file)
      : owner_(owner), path_(std::move(path)), file_(std::move(file)) {}

  absl::Status WriteAt(std::int64_t offset, absl::string_view bytes) override {
    const absl::Status status = owner_.BeforeChange("write", path_);
    if (status.ok()) return file_->WriteAt(offset, bytes);
    file_->WriteAt(offset, bytes.substr(0, bytes.size() / 2)).IgnoreError();
    return status;
  }
  absl::Status Sync() override {
    TROUPE_RETURN_IF_ERROR(owner_.BeforeChange("sync", path_));
    return owner_.syncs_ ? file_->Sync() : absl::OkStatus();
  }
  absl::Status Close() override {
    TROUPE_RETURN_IF_ERROR(owner_.BeforeChange("close", path_));
    return file_->Close();
  }

 private:
  InterceptedFileSystem& owner_;
  const std::string path_;
  const std::unique_ptr<SharedFile> file_;
};

class InterceptedFileSystem::Read : public ReadableFile {
 public:
  Read(InterceptedFileSystem& owner, std::string path,
       std::unique_ptr<ReadableFile> file)
      : owner_(owner), path_(std::move(path)), file_(std::move(file)) {}

  std::int64_t size() const override { return file_->size(); }
  absl::Status ReadAt(std::int64_t offset,
                      absl::Span<char> into) const override {
    TROUPE_RETURN_IF_ERROR(owner_.BeforeRead(path_));
    return file_->ReadAt(offset, into);
  }

 private:
  InterceptedFileSystem& owner_;
  const std::string path_;
  const std::unique_ptr<ReadableFile> file_;
};

absl::StatusOr<std::unique_ptr<WritableFile>> InterceptedFileSystem::Create(
    const std::string& path) {
  TROUPE_RETURN_IF_ERROR(BeforeChange("create", path));
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file,
                          inner_.Create(path));
  return std::make_unique<Written>(*this, path, std::move(file));
}

absl::StatusOr<std::unique_ptr<WritableFile>>
InterceptedFileSystem::OpenToAppend(const std::string& path) {
  TROUPE_RETURN_IF_ERROR(BeforeChange("create", path));
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file,
                          inner_.OpenToAppend(path));
  return std::make_unique<Written>(*this, path, std::move(file));
}

absl::StatusOr<std::unique_ptr<SharedFile>> InterceptedFileSystem::OpenToShare(
    const std::string& path, std::int64_t bytes) {
  TROUPE_RETURN_IF_ERROR(BeforeChange("create", path));
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<SharedFile> file,
                          inner_.OpenToShare(path, bytes));
  return std::make_unique<Shared>(*this, path, std::move(file));
}

absl::StatusOr<std::unique_ptr<ReadableFile>> InterceptedFileSystem::Open(
    const std::string& path) {
  TROUPE_RETURN_IF_ERROR(BeforeRead(path));
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file,
                          inner_.Open(path));
  return std::make_unique<Read>(*this, path, std::move(file));
}

absl::StatusOr<std::string> InterceptedFileSystem::ReadToEnd(
    const std::string& path, std::int64_t bytes_max) {
  TROUPE_RETURN_IF_ERROR(BeforeRead(path));
  return inner_.ReadToEnd(path, bytes_max);
}

absl::Status InterceptedFileSystem::CreateFolder(const std::string& path) {
  TROUPE_RETURN_IF_ERROR(BeforeChange("create folder", path));
  return inner_.CreateFolder(path);
}

absl::Status InterceptedFileSystem::SyncFolder(const std::string& path) {
  TROUPE_RETURN_IF_ERROR(BeforeChange("sync folder", path));
  return syncs_ ? inner_.SyncFolder(path) : absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> InterceptedFileSystem::List(
    const std::string& path) {
  TROUPE_RETURN_IF_ERROR(BeforeRead(path));
  return inner_.List(path);
}

absl::Status InterceptedFileSystem::Rename(const std::string& from,
                                           const std::string& to) {
  TROUPE_RETURN_IF_ERROR(BeforeChange("rename to", to));
  return inner_.Rename(from, to);
}

absl::Status InterceptedFileSystem::Exchange(const std::string& a,
                                             const std::string& b) {
  TROUPE_RETURN_IF_ERROR(BeforeChange("exchange", b));
  return inner_.Exchange(a, b);
}

absl::Status InterceptedFileSystem::MakeLink(const std::string& target,
                                             const std::string& path) {
  TROUPE_RETURN_IF_ERROR(BeforeChange("make link", path));
  return inner_.MakeLink(target, path);
}

absl::StatusOr<std::string> InterceptedFileSystem::ReadLink(
    const std::string& path) {
  TROUPE_RETURN_IF_ERROR(BeforeRead(path));
  return inner_.ReadLink(path);
}

absl::Status InterceptedFileSystem::RemoveAll(const std::string& path) {
  TROUPE_RETURN_IF_ERROR(BeforeChange("remove", path));
  return inner_.RemoveAll(path);
}

absl::StatusOr<std::unique_ptr<FileLock>> InterceptedFileSystem::Lock(
    const std::string& path, absl::string_view holder) {
  TROUPE_RETURN_IF_ERROR(BeforeChange("lock", path));
  return inner_.Lock(path, holder);
}

}  // namespace troupe::base
