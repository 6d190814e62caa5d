// The notes of one collective that have arrived: announcements that the ranks
// of another member have started it.
//
//   Notes notes(/*members=*/3);
//   notes.Add(member, std::move(note), /*keep=*/true);
//   if (notes.complete()) Begin();
//
// Not thread-safe: used under the group's lock. A note is constant once it was
// added.

#ifndef COMM_SPANNING_OPERATION_NOTES_H_
#define COMM_SPANNING_OPERATION_NOTES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace troupe::comm::internal {

struct Note {
  bool here = false;
  int rank = 0;  // the lowest rank of the member
  std::uint64_t signature = 0;
  std::uint64_t settings = 0;
  std::uint64_t replicas = 0;
  bool by_reference = false;
  // Counts, small parts, references, in this order: in `kept`, or in the link's
  // memory if all of it is used before the link goes on.
  absl::string_view payload;
  std::string kept;
};

class Notes {
 public:
  explicit Notes(int members) : notes_(members) {}

  // Adds the note of `member`, which has none yet; copies its payload if
  // `keep`.
  void Add(int member, Note note, bool keep) {
    Note& added = notes_[member] = std::move(note);
    added.here = true;
    ++here_;
    if (!keep || added.payload.empty()) return;
    added.kept.assign(added.payload.data(), added.payload.size());
    added.payload = added.kept;
  }
  // Forgets all notes.
  void Clear() {
    for (Note& note : notes_) note = Note();
    here_ = 0;
  }

  const Note& operator[](int member) const { return notes_[member]; }
  const std::vector<Note>& all() const { return notes_; }
  // Returns whether all members but this process have sent one.
  bool complete() const { return here_ + 1 == static_cast<int>(notes_.size()); }

 private:
  std::vector<Note> notes_;  // index: member
  int here_ = 0;
};

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_OPERATION_NOTES_H_
