// An error that blames fields of an options struct, so that a program can find
// out which. Whoever filled the struct from a file says where the value stood.
//
//   absl::Status SgdOptions::Validate() const {
//     if (lr >= 0) return absl::OkStatus();
//     return base::FieldError<&SgdOptions::lr>(
//         absl::StrCat(base::FieldName<&SgdOptions::lr>(), " = ", lr,
//                      ": must be at least 0"));
//   }
//   base::FieldsOf(status);         // {"SgdOptions.lr"}
//   std::string(status.message());  // "SgdOptions.lr = -1: must be at least 0"
//
// A struct that others derive from, to have its fields, names the struct that
// errors mention in its place:
//
//   struct SavePolicy {
//     static constexpr char kFieldsOf[] = "CheckpointOptions";
//     int keep = 3;
//   };
//   struct CheckpointOptions : SavePolicy {};
//   base::FieldName<&CheckpointOptions::keep>();  // "CheckpointOptions.keep"
//
// A field is named by a pointer to it: a name that is not there does not
// compile. Messages write names as FieldName() does, so that a front can put
// its own in their place (tools/trainer/config/config_blame.h). The fields
// travel as a payload of the Status; one made anew from code and message loses
// them.

#ifndef BASE_FIELD_ERROR_H_
#define BASE_FIELD_ERROR_H_

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace troupe::base {

namespace internal {

// Returns "SgdOptions.lr" from the compiler's name of
// FieldSignature<&nn::SgdOptions::lr>(). Unless it is null, `named_struct`
// stands in place of "SgdOptions".
std::string NameIn(absl::string_view signature, const char* named_struct);

template <auto kMember>
constexpr const char* FieldSignature() {
  return __PRETTY_FUNCTION__;
}

// The struct that `Struct` names in its place (kFieldsOf); null if none.
template <typename Struct, typename = void>
inline constexpr const char* kNamedStruct = nullptr;
template <typename Struct>
inline constexpr const char*
    kNamedStruct<Struct, std::void_t<decltype(Struct::kFieldsOf)>> =
        Struct::kFieldsOf;

template <typename Struct, typename T>
constexpr const char* NamedStructOf(T Struct::* /*member*/) {
  return kNamedStruct<Struct>;
}

}  // namespace internal

// "SgdOptions.lr" for &nn::SgdOptions::lr: the struct and the field, without
// namespaces.
template <auto kMember>
std::string FieldName() {
  return internal::NameIn(internal::FieldSignature<kMember>(),
                          internal::NamedStructOf(kMember));
}

// `status` with `fields` as the ones to blame, the most likely one first. An
// error that names fields already keeps them; ok stays ok.
absl::Status WithFields(absl::Status status,
                        const std::vector<std::string>& fields);

// Returns `status` with another message. It blames the same fields.
absl::Status WithMessage(const absl::Status& status, absl::string_view message);

// The fields that `status` blames; none where it names none.
std::vector<std::string> FieldsOf(const absl::Status& status);

template <auto... kMembers>
absl::Status WithFields(absl::Status status) {
  return WithFields(std::move(status), {FieldName<kMembers>()...});
}

// kInvalidArgument.
template <auto... kMembers>
absl::Status FieldError(absl::string_view message) {
  return WithFields<kMembers...>(absl::InvalidArgumentError(message));
}

}  // namespace troupe::base

#endif  // BASE_FIELD_ERROR_H_
