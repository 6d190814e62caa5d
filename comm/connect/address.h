// The address that a process publishes in the store for those that connect to
// it.
//
//   Address address;
//   address.host_key = HostKey();
//   address.tcp = "127.0.0.1:40112";
//   absl::StatusOr<Address> same = ParseAddress(FormatAddress(address));

#ifndef COMM_CONNECT_ADDRESS_H_
#define COMM_CONNECT_ADDRESS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace troupe::comm {

struct Address {
  std::string host_key;
  std::string tcp;          // "127.0.0.1:40112"; empty: no TCP
  std::string unix_socket;  // an abstract name, or empty
};

// Returns "host_key tcp unix", with "-" for an empty field.
std::string FormatAddress(const Address& address);
// Parses the text of FormatAddress().
//   kInvalidArgument: `text` is not such an address.
absl::StatusOr<Address> ParseAddress(absl::string_view text);

}  // namespace troupe::comm

#endif  // COMM_CONNECT_ADDRESS_H_
