// The error of a call of a group, as a program gets it.
//
//   ThrowOf("Send", place, status);   // "Send() at train.cc:12: rank 1 ..."

#ifndef TROUPE_INTERNAL_CALL_ERROR_H_
#define TROUPE_INTERNAL_CALL_ERROR_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "actors/program/call_note.h"
#include "base/status_error.h"

namespace troupe {

// Throws the error of a call, with the call in front.
inline void ThrowOf(const char* name, const actors::CallPlace& place,
                    const absl::Status& status) {
  if (status.ok()) return;
  throw base::StatusError(absl::Status(
      status.code(),
      absl::StrCat(actors::CallText(name, place), ": ", status.message())));
}

}  // namespace troupe

#endif  // TROUPE_INTERNAL_CALL_ERROR_H_
