// Constants of the zip format (PKWARE's APPNOTE.TXT, section 4.3), for its
// reader and its writer.
//
//   if (first_word == kZipLocalHeaderMark) ReadEntry();

#ifndef NN_SERIALIZE_TORCH_ZIP_FORMAT_H_
#define NN_SERIALIZE_TORCH_ZIP_FORMAT_H_

#include <cstdint>

namespace troupe::nn {

inline constexpr std::uint32_t kZipLocalHeaderMark = 0x04034b50;
inline constexpr std::uint32_t kZipDirectoryEntryMark = 0x02014b50;
inline constexpr std::uint32_t kZipEndMark = 0x06054b50;
inline constexpr std::uint32_t kZipEnd64Mark = 0x06064b50;
inline constexpr std::uint32_t kZipLocator64Mark = 0x07064b50;

// Sizes without the parts of variable size, in bytes.
inline constexpr std::int64_t kZipLocalHeaderBytes = 30;
inline constexpr std::int64_t kZipDirectoryEntryBytes = 46;
inline constexpr std::int64_t kZipEndBytes = 22;
inline constexpr std::int64_t kZipEnd64Bytes = 56;
inline constexpr std::int64_t kZipLocator64Bytes = 20;
inline constexpr std::int64_t kZipCommentBytesMax = 65535;

inline constexpr std::uint16_t kZipStored = 0;
inline constexpr std::uint16_t kZipDeflated = 8;
inline constexpr std::uint16_t kZipEncryptedFlag = 1;

// Kind of the extra field that has numbers of 64 bits, and the number of 32
// bits that stands for one of them.
inline constexpr std::uint16_t kZip64Field = 1;
inline constexpr std::int64_t kZipIn64 = 0xffffffff;

}  // namespace troupe::nn

#endif  // NN_SERIALIZE_TORCH_ZIP_FORMAT_H_
