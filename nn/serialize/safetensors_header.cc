#include "nn/serialize/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "base/check.h"
#include "nlohmann/json.hpp"

namespace troupe::nn {
namespace {

using Json = nlohmann::json;

constexpr char kMetadataName[] = "__metadata__";
constexpr std::int64_t kInt64Max = std::numeric_limits<std::int64_t>::max();

// Formats a name from an untrusted file for one line of a message.
std::string Shown(absl::string_view name) {
  constexpr std::size_t kCharsMax = 80;
  const bool longer = name.size() > kCharsMax;
  return absl::StrCat("\"", absl::CHexEscape(name.substr(0, kCharsMax)),
                      longer ? "...\"" : "\"");
}

// The same for a shape: "[2, 3]".
std::string ShownShape(absl::Span<const std::int64_t> dims) {
  constexpr std::size_t kDimsMax = 12;
  return absl::StrCat("[", absl::StrJoin(dims.subspan(0, kDimsMax), ", "),
                      dims.size() > kDimsMax ? ", ...]" : "]");
}

std::optional<DType> ParseSafetensorsDType(absl::string_view name) {
  for (DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kF16,
                      DType::kI32, DType::kI64, DType::kU8}) {
    if (SafetensorsDTypeName(dtype) == name) return dtype;
  }
  return std::nullopt;
}

// A dtype of the format that no Tensor has.
struct OtherDType {
  absl::string_view name;
  int bits;
};

constexpr OtherDType kOtherDTypes[] = {
    {"BOOL", 8},    {"I8", 8},          {"I16", 16},        {"U16", 16},
    {"U32", 32},    {"U64", 64},        {"C64", 64},        {"F4", 4},
    {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"F8_E4M3", 8},     {"F8_E5M2", 8},
    {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8},
};

// Returns the bits of an element of a dtype of the format; 0: the format has no
// such dtype.
int BitsOf(absl::string_view dtype) {
  if (const std::optional<DType> known = ParseSafetensorsDType(dtype)) {
    return 8 * static_cast<int>(SizeOf(*known));
  }
  for (const OtherDType& other : kOtherDTypes) {
    if (other.name == dtype) return other.bits;
  }
  return 0;
}

// Handles the events of the JSON parser; keeps only what the format has, so a
// header full of brackets takes no memory.
class HeaderReader : public nlohmann::json_sax<Json> {
 public:
  SafetensorsHeader TakeHeader() { return std::move(header_); }
  const std::string& error() const { return error_; }

  bool start_object(std::size_t) override {
    switch (at_) {
      case At::kStart:
        return Go(At::kTop);
      case At::kTopValue:
        if (name_ == kMetadataName) return Go(At::kMetadata);
        entry_ = SafetensorsEntry();
        entry_.name = name_;
        shape_.clear();
        offsets_.clear();
        fields_.clear();
        return Go(At::kTensor);
      default:
        return Unexpected("an object");
    }
  }

  bool key(string_t& key) override {
    switch (at_) {
      case At::kTop:
        name_ = key;
        if (!names_.insert(key).second) return Fail("occurs twice");
        return Go(At::kTopValue);
      case At::kMetadata:
        metadata_key_ = key;
        return Go(At::kMetadataValue);
      default:
        if (!fields_.insert(key).second) return Fail("has a field twice");
        if (key == "dtype") return Go(At::kDType);
        if (key == "shape") return Go(At::kShapeValue);
        if (key == "data_offsets") return Go(At::kOffsetsValue);
        return Fail(absl::StrCat("has the unknown field ", Shown(key)));
    }
  }

  bool string(string_t& value) override {
    if (at_ == At::kMetadataValue) {
      if (!header_.metadata.emplace(metadata_key_, value).second) {
        return Fail("has a key twice");
      }
      return Go(At::kMetadata);
    }
    if (at_ != At::kDType) return Unexpected("a string");
    if (BitsOf(value) == 0) {
      return Fail(absl::StrCat("has dtype ", Shown(value),
                               ", which the format does not have"));
    }
    dtype_ = value;
    return Go(At::kTensor);
  }

  bool start_array(std::size_t) override {
    if (at_ == At::kShapeValue) return Go(At::kShape);
    if (at_ == At::kOffsetsValue) return Go(At::kOffsets);
    return Unexpected("a list");
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (at_ != At::kShape && at_ != At::kOffsets) {
      return Unexpected("a number");
    }
    if (value > static_cast<number_unsigned_t>(kInt64Max)) {
      return Fail("has a number above 2^63");
    }
    if (at_ == At::kOffsets && offsets_.size() == 2) {
      return Fail("has more than two data_offsets");
    }
    (at_ == At::kShape ? shape_ : offsets_)
        .push_back(static_cast<std::int64_t>(value));
    return true;
  }

  bool end_array() override { return Go(At::kTensor); }

  bool end_object() override {
    if (at_ == At::kTop) return Go(At::kEnd);
    return at_ == At::kMetadata ? Go(At::kTop) : FinishTensor();
  }

  bool null() override { return Unexpected("null"); }
  bool boolean(bool) override { return Unexpected("a boolean"); }
  bool number_integer(number_integer_t) override {
    return Unexpected("a negative number");
  }
  bool number_float(number_float_t, const string_t&) override {
    return Unexpected("a fraction");
  }
  bool binary(binary_t&) override { return Unexpected("binary data"); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    error_ = absl::StrCat("is not valid JSON at byte ", position);
    return false;
  }

 private:
  // Position of the parser in the header.
  enum class At {
    kStart,
    kTop,
    kTopValue,
    kMetadata,
    kMetadataValue,
    kTensor,
    kDType,
    kShapeValue,
    kShape,
    kOffsetsValue,
    kOffsets,
    kEnd,
  };

  bool Go(At at) {
    at_ = at;
    return true;
  }
  bool Fail(absl::string_view what) {
    error_ = absl::StrCat("entry ", Shown(name_), " ", what);
    return false;
  }
  bool Unexpected(absl::string_view what) {
    if (at_ != At::kStart) {
      return Fail(absl::StrCat("has ", what, " in the wrong place"));
    }
    error_ = absl::StrCat("is ", what, ", not an object");
    return false;
  }

  bool FinishTensor() {
    if (fields_.size() != 3 || offsets_.size() != 2) {
      return Fail("lacks dtype, shape or two data_offsets");
    }
    std::int64_t bits = BitsOf(dtype_);
    for (std::int64_t extent : shape_) {
      if (__builtin_mul_overflow(bits, extent, &bits)) {
        return Fail("has a shape of more than 2^63 bits");
      }
    }
    const std::string what = absl::StrCat(dtype_, ShownShape(shape_));
    entry_.begin = offsets_[0];
    entry_.end = offsets_[1];
    if (bits % 8 != 0) {
      return Fail(absl::StrCat("is ", what, ", which takes no whole bytes"));
    }
    if (entry_.end < entry_.begin || entry_.end - entry_.begin != bits / 8) {
      return Fail(absl::StrCat("has data_offsets [", entry_.begin, ", ",
                               entry_.end, "], but ", what, " takes ", bits / 8,
                               " bytes"));
    }
    const std::optional<DType> dtype = ParseSafetensorsDType(dtype_);
    if (!dtype || shape_.size() > Shape::kMaxRank) {
      entry_.unreadable = what;
    } else if (!Shape::Fits(shape_)) {
      // Beside an extent of 0, others may still have any size here.
      return Fail("has extents of 2^60 and more");
    } else {
      entry_.dtype = *dtype;
      entry_.shape = Shape(shape_);
    }
    header_.entries.push_back(std::move(entry_));
    return Go(At::kTop);
  }

  At at_ = At::kStart;
  SafetensorsHeader header_;
  std::set<std::string> names_;
  std::string name_, metadata_key_, dtype_;
  SafetensorsEntry entry_;
  std::vector<std::int64_t> shape_, offsets_;
  std::set<std::string> fields_;
  std::string error_;
};

// Checks that the data are contiguous and fill the file.
absl::Status CheckLayout(const std::vector<SafetensorsEntry>& entries,
                         std::int64_t data_bytes) {
  std::int64_t end = 0;
  for (const SafetensorsEntry& e : entries) {
    if (e.begin != end) {
      return absl::DataLossError(
          absl::StrCat("entry ", Shown(e.name), " begins at byte ", e.begin,
                       " of the data, where the one before ends at ", end));
    }
    end = e.end;
  }
  if (end != data_bytes) {
    return absl::DataLossError(absl::StrCat("its tensors take ", end,
                                            " bytes, but the file has ",
                                            data_bytes, " after the header"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Quoted(const std::string& text) {
  try {
    return Json(text).dump();
  } catch (const Json::exception&) {
    return absl::InvalidArgumentError(
        absl::StrCat("the name ", Shown(text), " is not UTF-8; rename it"));
  }
}

}  // namespace

absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(
    absl::string_view json, std::int64_t data_bytes) {
  HeaderReader reader;
  const bool parsed = Json::sax_parse(json.begin(), json.end(), &reader);
  if (!parsed) {
    return absl::DataLossError(absl::StrCat("its header ", reader.error()));
  }
  SafetensorsHeader header = reader.TakeHeader();
  std::stable_sort(header.entries.begin(), header.entries.end(),
                   [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
                     return std::pair(a.begin, a.end) <
                            std::pair(b.begin, b.end);
                   });
  TROUPE_RETURN_IF_ERROR(CheckLayout(header.entries, data_bytes));
  return header;
}

absl::StatusOr<std::string> FormatSafetensorsHeader(
    const SafetensorsHeader& header) {
  std::vector<std::string> members;
  if (!header.metadata.empty()) {
    std::vector<std::string> pairs;
    for (const auto& [key, value] : header.metadata) {
      TROUPE_ASSIGN_OR_RETURN(std::string quoted_key, Quoted(key));
      TROUPE_ASSIGN_OR_RETURN(std::string quoted_value, Quoted(value));
      pairs.push_back(absl::StrCat(quoted_key, ":", quoted_value));
    }
    members.push_back(absl::StrCat("\"", kMetadataName, "\":{",
                                   absl::StrJoin(pairs, ","), "}"));
  }
  for (const SafetensorsEntry& e : header.entries) {
    TROUPE_ASSIGN_OR_RETURN(std::string name, Quoted(e.name));
    members.push_back(
        absl::StrCat(name, ":{\"dtype\":\"", SafetensorsDTypeName(e.dtype),
                     "\",\"shape\":[", absl::StrJoin(e.shape.dims(), ","),
                     "],\"data_offsets\":[", e.begin, ",", e.end, "]}"));
  }
  return absl::StrCat("{", absl::StrJoin(members, ","), "}");
}

}  // namespace troupe::nn
