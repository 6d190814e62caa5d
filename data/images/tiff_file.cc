#include "data/images/tiff_file.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "absl/strings/match.h"
#include "base/check.h"
#include "data/images/image_errors.h"

namespace troupe::data {
namespace {

struct FreeOptions {
  void operator()(TIFFOpenOptions* options) const {
    TIFFOpenOptionsFree(options);
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<TiffFile>> TiffFile::Open(
    absl::Span<const std::uint8_t> bytes, absl::string_view name) {
  auto file = std::unique_ptr<TiffFile>(new TiffFile(bytes, name));
  file->OpenOnce();
  if (file->tiff_ == nullptr || file->lacks_values_) return file->Error();
  return file;
}

void TiffFile::OpenOnce() {
  const std::unique_ptr<TIFFOpenOptions, FreeOptions> options(
      TIFFOpenOptionsAlloc());
  if (options == nullptr) return;
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), kTiffBlockBytesMax);
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), Keep, this);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), Keep, this);
  const TIFFReadWriteProc no_write = [](thandle_t, void*, tmsize_t) {
    return tmsize_t{0};
  };
  const TIFFCloseProc no_close = [](thandle_t) { return 0; };
  const TIFFSizeProc size = [](thandle_t self) {
    return static_cast<toff_t>(static_cast<TiffFile*>(self)->size());
  };
  // "M": the bytes are not mapped, so that libtiff cannot write to them.
  tiff_.reset(TIFFClientOpenExt("memory", "rM", this, Read, no_write, Seek,
                                no_close, size, /*mapproc=*/nullptr,
                                /*unmapproc=*/nullptr, options.get()));
}

tmsize_t TiffFile::Read(thandle_t self, void* to, tmsize_t size) {
  TiffFile& file = *static_cast<TiffFile*>(self);
  if (size <= 0 || file.at_ >= file.bytes_.size()) return 0;
  const std::uint64_t taken = std::min<std::uint64_t>(
      static_cast<std::uint64_t>(size), file.bytes_.size() - file.at_);
  std::memcpy(to, file.bytes_.data() + file.at_, taken);
  file.at_ += taken;
  return static_cast<tmsize_t>(taken);
}

toff_t TiffFile::Seek(thandle_t self, toff_t offset, int whence) {
  TiffFile& file = *static_cast<TiffFile*>(self);
  // Places behind the end are possible: nothing can be read there.
  if (whence == SEEK_CUR) offset += file.at_;
  if (whence == SEEK_END) offset += file.bytes_.size();
  file.at_ = offset;
  return offset;
}

// Returns 1, by which libtiff calls no handler of the process.
int TiffFile::Keep(TIFF*, void* self, const char*, const char* format,
                   std::va_list arguments) {
  TiffFile& file = *static_cast<TiffFile*>(self);
  // libtiff goes on without the values, be it as grey without a palette.
  const bool lacks_values = absl::StartsWith(format, "IO error");
  std::string& message = file.message_;
  if (!message.empty() && (file.lacks_values_ || !lacks_values)) return 1;
  file.lacks_values_ = lacks_values;
  char text[200] = "";
  std::vsnprintf(text, sizeof(text), format, arguments);
  message = text;
  std::replace(message.begin(), message.end(), '\n', ' ');
  while (!message.empty() && (message.back() == '.' || message.back() == ' ')) {
    message.pop_back();
  }
  return 1;
}

std::uint32_t TiffFile::Long(std::uint32_t tag) const {
  std::uint32_t value = 0;
  TIFFGetFieldDefaulted(get(), tag, &value);
  return value;
}

std::uint16_t TiffFile::Short(std::uint32_t tag) const {
  std::uint16_t value = 0;
  TIFFGetFieldDefaulted(get(), tag, &value);
  return value;
}

void TiffFile::ForgetMessages() { message_.clear(); }

absl::Status TiffFile::Error() const {
  return DamagedImage(name_, "TIFF",
                      message_.empty() ? "libtiff cannot read it" : message_);
}

absl::Status TiffFile::NoWarning() const {
  return message_.empty() ? absl::OkStatus() : Error();
}

}  // namespace troupe::data
