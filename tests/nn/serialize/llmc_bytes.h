// A model file of llm.c as bytes, whose numbers count up.
//
//   LlmcHeader header;
//   header.version = 5;                       // bf16
//   std::string bytes = LlmcBytes(header);

#ifndef TESTS_NN_SERIALIZE_LLMC_BYTES_H_
#define TESTS_NN_SERIALIZE_LLMC_BYTES_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace troupe::nn {

inline constexpr std::int64_t kLlmcHeaderBytes = 1024;

struct LlmcHeader {
  std::int32_t magic = 20240326;
  std::int32_t version = 3;
  std::int32_t context = 1;
  std::int32_t vocabulary = 2;
  std::int32_t layers = 1;
  std::int32_t heads = 1;
  std::int32_t width = 1;
  // Rows of the token table, with those behind the vocabulary.
  std::int32_t rows = 3;
};

// Returns the number of bytes that the header demands.
inline std::int64_t LlmcSize(const LlmcHeader& h) {
  const std::int64_t width = h.width;
  const std::int64_t layer = 12 * width * width + 13 * width;
  const std::int64_t elems =
      (std::int64_t{h.rows} + h.context + 2) * width + h.layers * layer;
  return kLlmcHeaderBytes + elems * (h.version == 5 ? 2 : 4);
}

// Element i of an f32 file is i.
inline std::string LlmcBytes(const LlmcHeader& header) {
  std::string bytes(LlmcSize(header), '\0');
  std::memcpy(bytes.data(), &header, sizeof(header));
  std::vector<float> values((bytes.size() - kLlmcHeaderBytes) / sizeof(float));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i);
  }
  std::memcpy(&bytes[kLlmcHeaderBytes], values.data(),
              values.size() * sizeof(float));
  return bytes;
}

}  // namespace troupe::nn

#endif  // TESTS_NN_SERIALIZE_LLMC_BYTES_H_
