// The algorithm chosen for each product or convolution, as text. A library
// offers several, which differ in speed and in last bits; later runs reuse a
// choice that was once made by measuring.
//
//   ChoiceCache choices("NVIDIA H200, cuBLASLt 13.0.2, cuDNN 9.19.0");
//   absl::Status read = LoadChoices(files, "cache/choices.txt", choices);
//   choices.Put("matmul:f32:f32:8.16.32:nt:bias", "lt.0123456789abcdef");
//   if (choices.changed()) {
//     TROUPE_RETURN_IF_ERROR(SaveChoices(files, "cache/choices.txt", choices));
//   }
//
// The text of a file (N lines, then their count and hash):
//
//     troupe choices 1
//     of NVIDIA H200, cuBLASLt 13.0.2, cuDNN 9.19.0
//     matmul:f32:f32:8.16.32:nt:bias lt.0123456789abcdef
//     end 1 8c3a29c1b6d0f7e4
//
// A choice is valid for the library version and the device that it was made
// with; text of another context is refused. Text that is damaged anywhere is
// refused as a whole: its choices can be measured again.
//
// Threads: one at a time per object. Cost: a look-up in a hash table.

#ifndef NN_KERNELS_CHOICE_CACHE_H_
#define NN_KERNELS_CHOICE_CACHE_H_

#include <cstddef>
#include <map>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/files/file_system.h"

namespace troupe::nn {

class ChoiceCache {
 public:
  static constexpr std::size_t kTextBytesMax = std::size_t{4} << 20;
  static constexpr std::size_t kEntriesMax = 16384;
  static constexpr std::size_t kContextBytesMax = 256;
  static constexpr std::size_t kKeyBytesMax = 256;
  static constexpr std::size_t kChoiceBytesMax = 2048;

  // Whether a text may be a context (a line of at most kContextBytesMax
  // printing characters), a key or a choice (words: printing characters without
  // spaces, within the limits).
  static bool IsContext(absl::string_view text);
  static bool IsKey(absl::string_view text);
  static bool IsChoice(absl::string_view text);

  explicit ChoiceCache(std::string context);

  const std::string& context() const { return context_; }
  std::size_t size() const { return choices_.size(); }
  std::map<std::string, std::string> choices() const {
    return {choices_.begin(), choices_.end()};
  }

  // Returns null if the key has no choice. Valid until the next call that is
  // not const.
  const std::string* Find(absl::string_view key) const;
  // Adds a choice. A full cache keeps its entries and ignores new ones.
  void Put(absl::string_view key, absl::string_view choice);

  // Returns the text, sorted by key, so that equal choices are equal text.
  std::string ToText() const;
  // Adds the entries of `text`; existing entries do not change. After an error
  // the cache is unchanged.
  //   kFailedPrecondition: other device or library; says which.
  //   kInvalidArgument:    malformed text; says where and why.
  absl::Status AddText(absl::string_view text);

  // Whether Put() has added anything since the last SaveChoices().
  bool changed() const { return changed_; }
  void set_saved() { changed_ = false; }

 private:
  const std::string context_;
  absl::flat_hash_map<std::string, std::string> choices_;
  bool changed_ = false;
};

// Adds the choices of a file. A missing file is no error.
//   Errors: of AddText() and of reading, with the path; the cache is unchanged
//     and can still be used. A caller logs the error and continues.
absl::Status LoadChoices(base::FileSystem& files, const std::string& path,
                         ChoiceCache& choices);
// Replaces the file by the cache, merged with what other processes wrote there
// meanwhile. A reader finds the old file or the new one.
absl::Status SaveChoices(base::FileSystem& files, const std::string& path,
                         ChoiceCache& choices);

}  // namespace troupe::nn

#endif  // NN_KERNELS_CHOICE_CACHE_H_
