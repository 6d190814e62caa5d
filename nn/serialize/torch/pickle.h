// Reads pickles of Python (PEP 307, PEP 3154; Lib/pickletools.py) as data: a
// tree of values. Nothing is imported or called.
//
//   TROUPE_ASSIGN_OR_RETURN(const PickleTree tree, ParsePickle(bytes));
//   const PickleValue& root = tree[tree.root];
//   if (root.kind == PickleKind::kDict) Show(tree.TextOf(root.items[0]));
//
// A name ("torch.FloatStorage") is kept as a name. A call of a name on the list
// of pickle_calls.h becomes a value with name and arguments, for its reader to
// interpret; state that is set on it is discarded. An archive with a call of
// any other name is refused, and the error has that name.
//
// The bytes are not trusted. Limits: bytes, values, depth of marks, size of the
// stack and of the memo. Time and memory are proportional to the bytes,
// whatever they say. Values refer to each other by number, so that shared and
// cyclic ones cost nothing. Texts point into the bytes. All protocols, 0 to 5,
// are read.

#ifndef NN_SERIALIZE_TORCH_PICKLE_H_
#define NN_SERIALIZE_TORCH_PICKLE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace troupe::nn {

// Limits on one pickle. That of a model of 10,000 tensors has 2 MB and
// 300,000 values, of 56 bytes each.
inline constexpr std::size_t kPickleBytesMax = std::size_t{1} << 28;
inline constexpr std::size_t kPickleValuesMax = std::size_t{1} << 22;
inline constexpr std::size_t kPickleStackMax = std::size_t{1} << 20;
inline constexpr std::size_t kPickleMarksMax = 1000;
// Limit on the length of names of modules and classes.
inline constexpr std::size_t kPickleNameBytesMax = 200;

enum class PickleKind : std::uint8_t {
  kNone,
  kBool,
  kInteger,   // beyond 64 bits: kOpaque
  kFloat,     // its value is not kept
  kText,      // str or bytes
  kList,      // list or set; items
  kTuple,     // items
  kDict,      // items: key, value, key, value, ...
  kName,      // a class or function; text: "torch.FloatStorage"
  kCall,      // text: the name; items[0]: the arguments, mostly a kTuple
  kExternal,  // a persistent id, which the pickler's user gives a meaning;
              // items[0]: the id
  kOpaque,
};

using PickleId = std::uint32_t;

struct PickleValue {
  PickleKind kind = PickleKind::kOpaque;
  std::int64_t number = 0;
  absl::string_view text;
  std::vector<PickleId> items;
};

struct PickleTree {
  std::vector<PickleValue> values;
  PickleId root = 0;
  // Number of bytes of the pickle; others may follow.
  std::size_t bytes = 0;
  // Texts that do not stand in the bytes as they are.
  std::deque<std::string> made_texts;

  const PickleValue& operator[](PickleId id) const { return values[id]; }
  // Returns the text of a value; empty if it is none.
  absl::string_view TextOf(PickleId id) const;
  // Returns "a dictionary", "a list", ... or the name that a kCall calls.
  std::string Describe(PickleId id) const;
};

// Parses the pickle at the beginning of `bytes`, which must outlive the tree.
//   kDataLoss: not a pickle, or damaged. kOutOfRange: the bytes end before it
//     does. kResourceExhausted: a limit is exceeded.
//   kPermissionDenied: it has a call of a name that is not on the list.
// Errors are in words that complete "FILE ".
absl::StatusOr<PickleTree> ParsePickle(absl::string_view bytes);

// Returns a name or a text of a file for an error: one line, at most 100
// characters, control characters escaped.
std::string PrintableName(absl::string_view text);

}  // namespace troupe::nn

#endif  // NN_SERIALIZE_TORCH_PICKLE_H_
