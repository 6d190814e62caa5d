#include "data/images/webp.h"

#include <webp/decode.h>
#include <webp/demux.h>

#include <memory>

#include "base/check.h"
#include "data/images/image_errors.h"
#include "data/images/image_memory.h"

namespace troupe::data {
namespace {

constexpr absl::string_view kWebp = "WebP";

struct DeleteDemuxer {
  void operator()(WebPDemuxer* demuxer) const { WebPDemuxDelete(demuxer); }
};
using DemuxerPtr = std::unique_ptr<WebPDemuxer, DeleteDemuxer>;

// The first frame of a file. Its bytes belong to the file.
struct FirstFrame {
  explicit FirstFrame(const WebPDemuxer* demuxer) {
    exists = WebPDemuxGetFrame(demuxer, /*frame_number=*/1, &frame) != 0;
  }
  ~FirstFrame() { WebPDemuxReleaseIterator(&frame); }
  FirstFrame(const FirstFrame&) = delete;
  FirstFrame& operator=(const FirstFrame&) = delete;

  WebPIterator frame{};
  bool exists = false;
};

absl::Status WebpError(VP8StatusCode code, absl::string_view name) {
  switch (code) {
    case VP8_STATUS_OUT_OF_MEMORY:
      return NoImageMemory(name, "libwebp");
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return UnreadKind(name, kWebp, "libwebp does not know a feature of it");
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
      return DamagedImage(name, kWebp, "pixels are missing at its end");
    default:
      return DamagedImage(name, kWebp, "its pixels do not decode");
  }
}

// Decodes a frame to its place in `image`.
absl::Status DecodeWebpFrame(const WebPIterator& frame, absl::string_view name,
                             Image& image) {
  WebPDecoderConfig config;
  TROUPE_CHECK(WebPInitDecoderConfig(&config) != 0, "libwebp's headers fit it");
  VP8StatusCode code =
      WebPGetFeatures(frame.fragment.bytes, frame.fragment.size, &config.input);
  if (code != VP8_STATUS_OK) return WebpError(code, name);
  // The decoder writes as many pixels as this second header declares.
  if (config.input.width != frame.width ||
      config.input.height != frame.height || frame.x_offset < 0 ||
      frame.y_offset < 0 || frame.width > image.width - frame.x_offset ||
      frame.height > image.height - frame.y_offset) {
    return DamagedImage(name, kWebp, "its headers declare two sizes");
  }
  const std::int64_t skipped =
      (frame.y_offset * image.width + frame.x_offset) * kImageChannels;
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = image.pixels.data() + skipped;
  config.output.u.RGBA.stride = static_cast<int>(image.width * kImageChannels);
  config.output.u.RGBA.size =
      image.pixels.size() - static_cast<std::size_t>(skipped);
  code = WebPDecode(frame.fragment.bytes, frame.fragment.size, &config);
  WebPFreeDecBuffer(&config.output);
  return code == VP8_STATUS_OK ? absl::OkStatus() : WebpError(code, name);
}

}  // namespace

bool IsWebp(absl::Span<const std::uint8_t> bytes) {
  const absl::string_view head(reinterpret_cast<const char*>(bytes.data()),
                               bytes.size());
  return head.size() >= 12 && head.substr(0, 4) == "RIFF" &&
         head.substr(8, 4) == "WEBP";
}

absl::StatusOr<Image> DecodeWebp(absl::Span<const std::uint8_t> bytes,
                                 absl::string_view name) {
  const WebPData data = {bytes.data(), bytes.size()};
  WebPDemuxState state = WEBP_DEMUX_PARSE_ERROR;
  const DemuxerPtr demuxer(WebPDemuxPartial(&data, &state));
  if (state == WEBP_DEMUX_PARSE_ERROR) {
    return DamagedImage(name, kWebp, "its chunks are broken");
  }
  if (state != WEBP_DEMUX_DONE) {
    return DamagedImage(name, kWebp, "it is shorter than it declares");
  }
  if (demuxer == nullptr) return NoImageMemory(name, "libwebp");
  TROUPE_ASSIGN_OR_RETURN(
      Image image,
      MakeImage(WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_HEIGHT),
                WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_WIDTH), name));
  const FirstFrame first(demuxer.get());
  if (!first.exists) return DamagedImage(name, kWebp, "it has no frame");
  TROUPE_RETURN_IF_ERROR(DecodeWebpFrame(first.frame, name, image));
  return image;
}

}  // namespace troupe::data
