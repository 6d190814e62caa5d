// A TIFF file in memory, opened by libtiff; a part of DecodeTiff().
//
//   TROUPE_ASSIGN_OR_RETURN(const auto file, TiffFile::Open(bytes, "a.tif"));
//   if (TIFFReadScanline(file->get(), row, 0) != 1) return file->Error();
//   TROUPE_RETURN_IF_ERROR(file->NoWarning());
//
// libtiff's messages come to this object rather than to handlers of the whole
// process, so that threads may decode at once. Errors: see DecodeImage().

#ifndef DATA_IMAGES_TIFF_FILE_H_
#define DATA_IMAGES_TIFF_FILE_H_

#include <tiffio.h>

#include <cstdarg>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace troupe::data {

// Limit on a block of memory that libtiff allocates, such as a row or a tile:
// four bytes for each of kImagePixelsMax.
inline constexpr std::int64_t kTiffBlockBytesMax = std::int64_t{1} << 28;

class TiffFile {
 public:
  // Reads the directory of the first image. `bytes` and `name` must outlive the
  // result.
  static absl::StatusOr<std::unique_ptr<TiffFile>> Open(
      absl::Span<const std::uint8_t> bytes, absl::string_view name);
  TiffFile(const TiffFile&) = delete;
  TiffFile& operator=(const TiffFile&) = delete;

  TIFF* get() const { return tiff_.get(); }
  absl::string_view name() const { return name_; }
  std::size_t size() const { return bytes_.size(); }

  // Returns the value of a field of a number, or its default.
  std::uint32_t Long(std::uint32_t tag) const;
  std::uint16_t Short(std::uint32_t tag) const;

  // Forgets the messages of the directory, many of which are about fields that
  // are not read.
  void ForgetMessages();
  // Returns an error with the first message since then.
  absl::Status Error() const;
  // Returns an error if libtiff has warned since then.
  absl::Status NoWarning() const;

 private:
  struct CloseTiff {
    void operator()(TIFF* tiff) const { TIFFClose(tiff); }
  };

  TiffFile(absl::Span<const std::uint8_t> bytes, absl::string_view name)
      : bytes_(bytes), name_(name) {}
  void OpenOnce();

  static tmsize_t Read(thandle_t self, void* to, tmsize_t size);
  static toff_t Seek(thandle_t self, toff_t offset, int whence);
  static int Keep(TIFF* tiff, void* self, const char* module,
                  const char* format, std::va_list arguments);

  const absl::Span<const std::uint8_t> bytes_;
  const absl::string_view name_;
  std::uint64_t at_ = 0;
  std::string message_;  // the first one, or the first about missing values
  bool lacks_values_ = false;  // values of the directory lie behind the end
  std::unique_ptr<TIFF, CloseTiff> tiff_;
};

}  // namespace troupe::data

#endif  // DATA_IMAGES_TIFF_FILE_H_
