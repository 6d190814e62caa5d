#include "data/images/jpeg.h"

#include <cstddef>
#include <cstdio>
// The headers of libjpeg need types of the two above.
#include <jerror.h>
#include <jpeglib.h>

#include <csetjmp>
#include <vector>

#include "base/check.h"
#include "data/images/image_errors.h"
#include "data/images/image_memory.h"

namespace troupe::data {
namespace {

// Returns whether a warning of libjpeg is about something that has no pixels: a
// parameter that decoders do not need, or bytes that nothing refers to.
bool IsHarmless(int warning) {
  switch (warning) {
    case JWRN_ADOBE_XFORM:      // an unknown colour transform
    case JWRN_BOGUS_ICC:        // a colour profile, which is not read
    case JWRN_EXTRANEOUS_DATA:  // bytes between two markers
    case JWRN_JFIF_MAJOR:       // the version of JFIF
    case JWRN_NOT_SEQUENTIAL:   // progressive parameters in a sequential file
      return true;
    default:
      return false;
  }
}

// Returns whether an error of libjpeg is about a kind of file that it does not
// decode, which may be undamaged.
bool IsUnknownKind(int error) {
  switch (error) {
    case JERR_ARITH_NOTIMPL:
    case JERR_BAD_PRECISION:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_SOF_UNSUPPORTED:
      return true;
    default:
      return false;
  }
}

// One decompression. libjpeg ends a failed call by longjmp() to Try().
class Decompressor {
 public:
  // `bytes` and `name` must outlive it.
  Decompressor(absl::Span<const std::uint8_t> bytes, absl::string_view name)
      : bytes_(bytes), name_(name) {
    jpeg_.err = jpeg_std_error(&errors_);
    jpeg_.client_data = this;
    errors_.error_exit = [](j_common_ptr jpeg) {
      Of(jpeg).Fail(jpeg->err->msg_code);
    };
    errors_.emit_message = [](j_common_ptr jpeg, int level) {
      if (level < 0) Of(jpeg).Warn(jpeg->err->msg_code);
    };
    progress_.progress_monitor = [](j_common_ptr jpeg) {
      Of(jpeg).CheckScans();
    };
  }
  ~Decompressor() { jpeg_destroy_decompress(&jpeg_); }
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;

  absl::Status ReadHeader() {
    return Try([this] {
      jpeg_create_decompress(&jpeg_);
      jpeg_.progress = &progress_;
      jpeg_mem_src(&jpeg_, bytes_.data(), bytes_.size());
      jpeg_read_header(&jpeg_, TRUE);
    });
  }

  // Sizes of the image. Valid after ReadHeader().
  std::int64_t height() const { return jpeg_.image_height; }
  std::int64_t width() const { return jpeg_.image_width; }
  bool is_cmyk() const {
    return jpeg_.jpeg_color_space == JCS_CMYK ||
           jpeg_.jpeg_color_space == JCS_YCCK;
  }

  // Decodes to rows of `row_bytes` bytes, RGB, or CMYK if is_cmyk().
  absl::Status Decode(std::uint8_t* pixels, std::size_t row_bytes) {
    TROUPE_RETURN_IF_ERROR(Try([this, pixels, row_bytes] {
      jpeg_.out_color_space = is_cmyk() ? JCS_CMYK : JCS_RGB;
      jpeg_.dct_method = JDCT_ISLOW;
      jpeg_start_decompress(&jpeg_);
      // Bytes behind the last row are not read: no pixel depends on them.
      while (jpeg_.output_scanline < jpeg_.output_height) {
        JSAMPROW row = pixels + jpeg_.output_scanline * row_bytes;
        jpeg_read_scanlines(&jpeg_, &row, /*max_lines=*/1);
      }
    }));
    if (has_ended_early_ && !HasAllScans()) return Error(JWRN_JPEG_EOF);
    return absl::OkStatus();
  }

 private:
  static Decompressor& Of(j_common_ptr jpeg) {
    return *static_cast<Decompressor*>(jpeg->client_data);
  }

  // Calls `work`, which may be left by Fail(): it must own nothing.
  template <typename Work>
  absl::Status Try(const Work& work) {
    if (setjmp(failed_) != 0) return Error(code_);
    work();
    return absl::OkStatus();
  }

  [[noreturn]] void Fail(int code) {
    code_ = code;
    // The first message tells more than those that follow from it.
    if (!has_ended_early_) {
      jpeg_.err->format_message(reinterpret_cast<j_common_ptr>(&jpeg_),
                                message_);
    }
    std::longjmp(failed_, 1);
  }

  void Warn(int code) {
    if (IsHarmless(code)) return;
    if (code != JWRN_JPEG_EOF) Fail(code);
    // Maybe only the marker at the end is missing: libjpeg warns of missing
    // pixels separately.
    has_ended_early_ = true;
    jpeg_.err->format_message(reinterpret_cast<j_common_ptr>(&jpeg_), message_);
  }

  // Fails after too many scans, as TurboJPEG does.
  void CheckScans() {
    if (jpeg_.input_scan_number <= kJpegScansMax) return;
    std::snprintf(message_, sizeof(message_), "it has more than %d scans",
                  kJpegScansMax);
    std::longjmp(failed_, 1);
  }

  // Returns whether no scan is missing after the data that were read.
  bool HasAllScans() const {
    if (jpeg_.progressive_mode == FALSE) {
      return jpeg_.comps_in_scan == jpeg_.num_components;
    }
    for (int c = 0; c < jpeg_.num_components; ++c) {
      for (int i = 0; i < DCTSIZE2; ++i) {
        // Number of bits that are still to come; -1: the whole coefficient.
        if (jpeg_.coef_bits[c][i] != 0) return false;
      }
    }
    return true;
  }

  absl::Status Error(int code) const {
    if (code == JERR_OUT_OF_MEMORY) {
      return NoImageMemory(name_, "libjpeg-turbo");
    }
    if (IsUnknownKind(code)) return UnreadKind(name_, "JPEG", message_);
    return DamagedImage(name_, "JPEG", message_);
  }

  const absl::Span<const std::uint8_t> bytes_;
  const absl::string_view name_;
  jpeg_decompress_struct jpeg_{};
  jpeg_error_mgr errors_{};
  jpeg_progress_mgr progress_{};
  std::jmp_buf failed_;
  char message_[JMSG_LENGTH_MAX] = "";
  int code_ = 0;
  bool has_ended_early_ = false;
};

// Converts CMYK as Adobe stores it, inverted (255: no ink): each of C, M and Y
// is multiplied by K.
void MultiplyOut(const std::vector<std::uint8_t>& cmyk, Image& image) {
  const std::size_t count = image.pixels.size() / kImageChannels;
  for (std::size_t i = 0; i < count; ++i) {
    const int black = cmyk[4 * i + 3];
    for (std::size_t c = 0; c < kImageChannels; ++c) {
      const int product = cmyk[4 * i + c] * black;
      image.pixels[kImageChannels * i + c] =
          static_cast<std::uint8_t>((product + 127) / 255);
    }
  }
}

}  // namespace

bool IsJpeg(absl::Span<const std::uint8_t> bytes) {
  return bytes.size() >= 3 && bytes[0] == 0xff && bytes[1] == 0xd8 &&
         bytes[2] == 0xff;
}

absl::StatusOr<Image> DecodeJpeg(absl::Span<const std::uint8_t> bytes,
                                 absl::string_view name) {
  Decompressor jpeg(bytes, name);
  TROUPE_RETURN_IF_ERROR(jpeg.ReadHeader());
  TROUPE_ASSIGN_OR_RETURN(Image image,
                          MakeImage(jpeg.height(), jpeg.width(), name));
  const std::size_t width = static_cast<std::size_t>(image.width);
  if (!jpeg.is_cmyk()) {
    TROUPE_RETURN_IF_ERROR(
        jpeg.Decode(image.pixels.data(), width * kImageChannels));
    return image;
  }
  std::vector<std::uint8_t> cmyk(image.pixels.size() / kImageChannels * 4);
  TROUPE_RETURN_IF_ERROR(jpeg.Decode(cmyk.data(), width * 4));
  MultiplyOut(cmyk, image);
  return image;
}

}  // namespace troupe::data
