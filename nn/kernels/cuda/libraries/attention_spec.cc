#include "nn/kernels/cuda/libraries/attention_spec.h"

#include "absl/strings/str_cat.h"
#include "nn/kernels/cuda/libraries/operand_checks.h"

namespace troupe::nn::cuda {
namespace {

// Limits on the width of a head. A library's kernels read heads 16 bytes at a
// time, and hold a whole head in registers and shared memory.
constexpr std::int64_t kWidthStep = 8;
constexpr std::int64_t kLibraryWidthMax = 128;

absl::string_view NameOf(AttentionPacking packing) {
  switch (packing) {
    case AttentionPacking::kApart:
      return "q.k.v";
    case AttentionPacking::kKeysAndValues:
      return "q.kv";
    case AttentionPacking::kAll:
      return "qkv";
  }
  return "unknown";
}

bool Is16Bit(DType dtype) {
  return dtype == DType::kBF16 || dtype == DType::kF16;
}

const void* DataOf(const Tensor& t) {
  return t.defined() ? t.device_data() : nullptr;
}

}  // namespace

std::int64_t AttentionSpec::query_row_heads() const {
  return packing == AttentionPacking::kAll ? size.Hq + 2 * size.Hkv : size.Hq;
}

std::int64_t AttentionSpec::key_row_heads() const {
  switch (packing) {
    case AttentionPacking::kAll:
      return query_row_heads();
    case AttentionPacking::kKeysAndValues:
      return 2 * size.Hkv;
    default:
      return size.Hkv;
  }
}

std::int64_t AttentionSpec::value_row_heads() const {
  return packing == AttentionPacking::kApart ? size.Hkv : key_row_heads();
}

std::string AttentionSpec::Key() const {
  return absl::StrCat(way == AttentionWay::kForward ? "attention_forward:"
                                                    : "attention_backward:",
                      DTypeName(dtype), ":", size.N, ".", size.T, ".", size.S,
                      ":",  //
                      size.Hq, ".", size.Hkv, ".", size.D, ":", NameOf(packing),
                      causal ? "+causal" : "");
}

absl::Status AttentionSpec::Check() const {
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(Key(), ": ", why));
  };
  for (std::int64_t extent :
       {size.N, size.T, size.S, size.Hq, size.Hkv, size.D}) {
    if (extent < 1 || extent > kExtentMax) {
      return refuse("extents must be in [1, 2^31)");
    }
  }
  if (size.Hq % size.Hkv != 0) {
    return refuse("the heads of keys must divide those of queries");
  }
  if (packing == AttentionPacking::kAll && size.S != size.T) {
    return refuse("queries and keys of one tensor must be as many");
  }
  if (!Is16Bit(dtype)) return refuse("operands must be bf16 or f16");
  return absl::OkStatus();
}

absl::Status CheckOperands(const AttentionSpec& spec,
                           const AttentionOperands& o) {
  const bool keys = spec.packing != AttentionPacking::kAll;
  const bool values = spec.packing == AttentionPacking::kApart;
  const bool backward = spec.way == AttentionWay::kBackward;
  return CheckPointers(spec.Key(), {{"q", DataOf(o.q), true},
                                    {"k", DataOf(o.k), keys},
                                    {"v", DataOf(o.v), values},
                                    {"y", DataOf(o.y), true},
                                    {"lse", DataOf(o.lse), true},
                                    {"dy", DataOf(o.dy), backward},
                                    {"dq", DataOf(o.dq), backward},
                                    {"dk", DataOf(o.dk), backward && keys},
                                    {"dv", DataOf(o.dv), backward && values}});
}

bool AttentionIsForLibrary(const AttentionRule& rule,
                           const AttentionSizes& size, DType dtype) {
  return Is16Bit(dtype) && !rule.dropout && size.N > 0 && size.S > 0 &&
         size.Hq > 0 && size.T >= kLibraryQueriesMin && size.D > 0 &&
         size.D % kWidthStep == 0 && size.D <= kLibraryWidthMax;
}

std::int64_t SamplesAtOnce(std::int64_t N, std::int64_t bytes,
                           std::int64_t bytes_max) {
  const std::int64_t bytes_of_one = (bytes + N - 1) / N;
  for (std::int64_t samples = N; samples > 0; --samples) {
    if (N % samples == 0 && samples * bytes_of_one <= bytes_max) {
      return samples;
    }
  }
  return 0;
}

}  // namespace troupe::nn::cuda
