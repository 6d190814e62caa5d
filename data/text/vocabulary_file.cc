#include "data/text/vocabulary_file.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/foreign_format.h"
#include "nlohmann/json.hpp"

namespace troupe::data {
namespace {

constexpr std::size_t kShownBytesMax = 40;

std::string Shown(absl::string_view text) {
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, kShownBytesMax)),
                      text.size() > kShownBytesMax ? "..." : "", "\"");
}

// A SAX handler that accepts one flat object of integers and stops at anything
// else. It builds no tree, so nested input costs no memory.
class VocabularyReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return NotANumber(); }
  bool boolean(bool) override { return NotANumber(); }
  bool number_integer(number_integer_t) override { return NotANumber(); }
  bool number_float(number_float_t, const string_t&) override {
    return NotANumber();
  }
  bool string(string_t&) override { return NotANumber(); }
  bool binary(binary_t&) override { return NotANumber(); }
  bool start_array(std::size_t) override { return NotANumber(); }
  bool end_array() override { return true; }
  bool end_object() override { return true; }

  bool start_object(std::size_t) override {
    if (inside_) return NotANumber();
    inside_ = true;
    return true;
  }
  bool key(string_t& text) override {
    text_ = std::move(text);
    return true;
  }
  bool number_unsigned(number_unsigned_t number) override {
    if (!inside_) return NotANumber();
    if (number >= static_cast<number_unsigned_t>(kVocabSizeMax)) {
      return Fail(absl::StrCat("the number of ", Shown(text_), " is ", number,
                               ", at most ", kVocabSizeMax - 1,
                               " is possible"));
    }
    if (!numbers_.emplace(text_, static_cast<std::int64_t>(number)).second) {
      return Fail(absl::StrCat(Shown(text_), " is there twice"));
    }
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return Fail(absl::StrCat("not JSON at byte ", position));
  }

  const std::string& error() const { return error_; }
  const absl::flat_hash_map<std::string, std::int64_t>& numbers() const {
    return numbers_;
  }

 private:
  bool NotANumber() {
    return Fail(inside_ ? absl::StrCat("the value of ", Shown(text_),
                                       " is not a token's number")
                        : "it is not a JSON object");
  }
  bool Fail(std::string error) {
    error_ = std::move(error);
    return false;
  }

  bool inside_ = false;
  std::string text_;
  std::string error_;
  absl::flat_hash_map<std::string, std::int64_t> numbers_;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> ParseVocabulary(
    absl::string_view json, absl::string_view name) {
  const auto damaged = [name](absl::string_view what) {
    return absl::DataLossError(absl::StrCat(
        name, ": ", what,
        "; give one JSON object from texts to the numbers 0..n-1"));
  };
  TROUPE_RETURN_IF_ERROR(
      base::RefuseForeignFormat(json, name, "not a vocabulary"));
  VocabularyReader reader;
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &reader)) {
    return damaged(reader.error());
  }
  const std::int64_t size = static_cast<std::int64_t>(reader.numbers().size());
  if (size == 0) return damaged("it has no tokens");
  std::vector<std::string> tokens(size);
  std::vector<bool> seen(size, false);
  for (const auto& [text, number] : reader.numbers()) {
    if (number >= size || seen[number]) {
      return damaged(absl::StrCat("its ", size, " texts do not have the ",
                                  "numbers 0..", size - 1, " once each"));
    }
    seen[number] = true;
    tokens[number] = text;
  }
  return tokens;
}

std::string VocabularyToJson(const std::vector<std::string>& tokens) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  std::int64_t number = 0;
  for (const std::string& token : tokens) json[token] = number++;
  return json.dump() + "\n";
}

}  // namespace troupe::data
