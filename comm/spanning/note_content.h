// The content of notes (notes.h): counts, small parts, references.
//
//   const std::string payload = NoteContent(context, *op, member, references);
//   // On the other side:
//   TROUPE_RETURN_IF_ERROR(ReadNote(context, op, member));
//
// A note is not trusted: one of a wrong size closes its link, with a message.
// Both sides know the plan, so the content has no headers.

#ifndef COMM_SPANNING_NOTE_CONTENT_H_
#define COMM_SPANNING_NOTE_CONTENT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "comm/spanning/group_context.h"
#include "comm/spanning/operation/operation.h"

namespace troupe::comm::internal {

// Returns the payload of the note of `op` to `member`; `references` is that of
// LendRanges(). Threads: any, without the group's lock, which reads the inputs.
std::string NoteContent(const GroupContext& context, const Operation& op,
                        int member, absl::string_view references);
// Returns the same if it is a single part in one rank's memory; otherwise "".
absl::string_view OnlyPart(const GroupContext& context, const Operation& op,
                           int member);

// Reads the note of `member`: compares settings and counts, and adds its parts
// to the pieces. Errors: kFailedPrecondition, kInvalidArgument. Called under
// the group's lock.
absl::Status ReadNote(const GroupContext& context, Operation* op, int member);

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_NOTE_CONTENT_H_
