#include "comm/connect/address.h"

#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace troupe::comm {
namespace {

std::string OrDash(const std::string& word) {
  return word.empty() ? "-" : word;
}

std::string NotDash(absl::string_view word) {
  return word == "-" ? "" : std::string(word);
}

}  // namespace

std::string FormatAddress(const Address& address) {
  return absl::StrCat(OrDash(address.host_key), " ", OrDash(address.tcp), " ",
                      OrDash(address.unix_socket));
}

absl::StatusOr<Address> ParseAddress(absl::string_view text) {
  const std::vector<absl::string_view> words = absl::StrSplit(text, ' ');
  bool empty = words.size() != 3;
  for (const absl::string_view word : words) empty |= word.empty();
  if (empty) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", absl::CHexEscape(text.substr(0, 100)),
                     "\" is no address of a process"));
  }
  Address address;
  address.host_key = NotDash(words[0]);
  address.tcp = NotDash(words[1]);
  address.unix_socket = NotDash(words[2]);
  return address;
}

}  // namespace troupe::comm
