#include "actors/checkpoint/json_fields.h"

#include "absl/strings/str_cat.h"

namespace troupe::actors {
namespace {

using Json = nlohmann::json;

absl::Status Wrong(const char* name, absl::string_view wanted) {
  return absl::DataLossError(
      absl::StrCat("field \"", name, "\" is missing or not ", wanted));
}

const Json* Find(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

}  // namespace

absl::StatusOr<Json> ParseJsonObject(absl::string_view text) {
  Json json = Json::parse(text.begin(), text.end(), /*cb=*/nullptr,
                          /*allow_exceptions=*/false);
  if (json.is_discarded()) return absl::DataLossError("it is not valid JSON");
  if (!json.is_object()) return absl::DataLossError("it is not a JSON object");
  return json;
}

absl::Status ReadField(const Json& object, const char* name,
                       std::uint64_t& value) {
  const Json* field = Find(object, name);
  if (field == nullptr || !field->is_number_unsigned()) {
    return Wrong(name, "an integer in range");
  }
  value = field->get<std::uint64_t>();
  return absl::OkStatus();
}

absl::Status ReadField(const Json& object, const char* name,
                       std::int64_t& value) {
  std::uint64_t read = 0;
  if (!ReadField(object, name, read).ok() ||
      read > static_cast<std::uint64_t>(kJsonCountMax)) {
    return Wrong(name, "an integer in range");
  }
  value = static_cast<std::int64_t>(read);
  return absl::OkStatus();
}

absl::Status ReadField(const Json& object, const char* name, double& value) {
  const Json* field = Find(object, name);
  if (field == nullptr || !field->is_number()) return Wrong(name, "a number");
  value = field->get<double>();
  return absl::OkStatus();
}

absl::Status ReadField(const Json& object, const char* name, bool& value) {
  const Json* field = Find(object, name);
  if (field == nullptr || !field->is_boolean()) {
    return Wrong(name, "true or false");
  }
  value = field->get<bool>();
  return absl::OkStatus();
}

absl::Status ReadField(const Json& object, const char* name,
                       std::string& value) {
  const Json* field = Find(object, name);
  if (field == nullptr || !field->is_string()) return Wrong(name, "a text");
  value = field->get<std::string>();
  return absl::OkStatus();
}

absl::Status ReadField(const Json& object, const char* name,
                       std::map<std::string, std::string>& value) {
  const Json* field = Find(object, name);
  if (field == nullptr || !field->is_object()) {
    return Wrong(name, "an object of texts");
  }
  for (const auto& [key, text] : field->items()) {
    if (!text.is_string()) return Wrong(name, "an object of texts");
    value[key] = text.get<std::string>();
  }
  return absl::OkStatus();
}

absl::StatusOr<const Json*> ObjectField(const Json& object, const char* name) {
  const Json* field = Find(object, name);
  if (field == nullptr || !field->is_object()) {
    return Wrong(name, "an object");
  }
  return field;
}

}  // namespace troupe::actors
