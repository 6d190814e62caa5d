#include "nn/kernels/cuda/libraries/choice_text.h"

#include <cstddef>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace troupe::nn::cuda {
namespace {

constexpr absl::string_view kLt = "lt.";
constexpr absl::string_view kCudnn = "cudnn:";
constexpr std::size_t kDigits = 16;

// Parses hexadecimal digits, lower case only.
bool ParseHex(absl::string_view digits, std::uint64_t& value) {
  value = 0;
  for (char c : digits) {
    const bool letter = c >= 'a' && c <= 'f';
    if (!letter && (c < '0' || c > '9')) return false;
    value = value << 4 |
            static_cast<std::uint64_t>(letter ? c - 'a' + 10 : c - '0');
  }
  return true;
}

// Parses a number as ToText() prints it: no '+', no leading zeros or spaces.
bool ParseNumber(absl::string_view text, std::int64_t& value) {
  return absl::SimpleAtoi(text, &value) && absl::StrCat(value) == text;
}

}  // namespace

std::string LtAlgorithmText(const LtAlgorithm& algorithm) {
  std::string text(kLt);
  for (std::uint64_t word : algorithm) {
    absl::StrAppend(&text, absl::Hex(word, absl::kZeroPad16));
  }
  return text;
}

bool ParseLtAlgorithm(absl::string_view text, LtAlgorithm& algorithm) {
  if (!absl::ConsumePrefix(&text, kLt)) return false;
  if (text.size() != kDigits * algorithm.size()) return false;
  for (std::size_t i = 0; i < algorithm.size(); ++i) {
    if (!ParseHex(text.substr(i * kDigits, kDigits), algorithm[i])) {
      return false;
    }
  }
  return true;
}

std::string EngineChoice::ToText() const {
  std::string text = absl::StrCat(fused ? "fused:" : "plain:", engine);
  for (const auto& [type, value] : knobs) {
    absl::StrAppend(&text, ":", type, "=", value);
  }
  return text;
}

bool EngineChoice::Parse(absl::string_view text, EngineChoice& choice) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ':');
  if (parts.size() < 2 || parts.size() > 2 + kKnobsMax) return false;
  if (parts[0] != "fused" && parts[0] != "plain") return false;
  choice.fused = parts[0] == "fused";
  if (!ParseNumber(parts[1], choice.engine) || choice.engine < 0) return false;
  choice.knobs.clear();
  for (std::size_t i = 2; i < parts.size(); ++i) {
    const std::size_t equals = parts[i].find('=');
    std::int64_t type = 0, value = 0;
    if (equals == absl::string_view::npos ||
        !ParseNumber(parts[i].substr(0, equals), type) ||
        !ParseNumber(parts[i].substr(equals + 1), value)) {
      return false;
    }
    if (type < 0 ||
        (!choice.knobs.empty() && choice.knobs.back().first >= type))
      return false;
    choice.knobs.emplace_back(type, value);
  }
  return true;
}

std::string AttentionChoice::ToText() const {
  return absl::StrCat(kCudnn, samples, ":", engine.ToText());
}

bool AttentionChoice::Parse(absl::string_view text, AttentionChoice& choice) {
  if (!absl::ConsumePrefix(&text, kCudnn)) return false;
  const std::size_t colon = text.find(':');
  return colon != absl::string_view::npos &&
         ParseNumber(text.substr(0, colon), choice.samples) &&
         choice.samples > 0 &&
         EngineChoice::Parse(text.substr(colon + 1), choice.engine);
}

}  // namespace troupe::nn::cuda
