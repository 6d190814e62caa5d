// The algorithms that the ranks of a process compute with, if a library offers
// several that differ in speed and in last bits (choice_cache.h). One object
// for a process: all ranks use what one of them has measured.
//
//   KernelChoices::Options options;
//   options.files = &files;
//   options.folder = "cache/troupe/kernels";
//   options.warn = [](const std::string& words) { std::cerr << words; };
//   auto choices = std::make_shared<KernelChoices>(options);
//   choices->Adopt(plan_of_the_checkpoint);           // overrides the disk
//   DeviceChoices& device = choices->For("NVIDIA H200, cuDNN 9.19.0");
//   if (auto choice = device.Find(key)) return Use(*choice);
//   Use(device.Agree(key, /*mine=*/"lt.01", Origin::kMeasured));
//   choices->InUse();                                 // for the next plan
//
// Precedence: a plan's choices, then those on disk, then the first rank that
// measures. The folder has one file for each device and its libraries; writes
// of several processes are merged. A file that cannot be used is reported once,
// by its name, and replaced; a folder that cannot be written is reported once.
// Neither is an error.
//
// Threads: any. Lifetime: `files` outlives the object, and users of a
// DeviceChoices do not. Cost: Find() and Agree() take a lock and do one
// look-up; For() may read a file, Save() writes the files with new choices.

#ifndef NN_KERNELS_KERNEL_CHOICES_H_
#define NN_KERNELS_KERNEL_CHOICES_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "base/files/file_system.h"

namespace troupe::nn {

// Algorithms by key, for each device and its libraries (a context of
// choice_cache.h).
using ChoicesByDevice =
    std::map<std::string, std::map<std::string, std::string>>;

// Origin of a choice. Only measured ones are written to disk; a plan records
// all choices that are in use.
enum class Origin { kPlan, kDisk, kMeasured, kGuessed };

// The choices of one kind of device.
class DeviceChoices {
 public:
  explicit DeviceChoices(const std::string& context) : context_(context) {}

  const std::string& context() const { return context_; }

  // Returns the recorded choice, and marks it as used.
  std::optional<std::string> Find(absl::string_view key)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Records `mine`, unless another rank was first. Returns the choice that all
  // must use. `refused`: a recorded choice that the library does not accept; it
  // is replaced.
  std::string Agree(absl::string_view key, const std::string& mine,
                    Origin origin, absl::string_view refused = "")
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class KernelChoices;

  struct Entry {
    std::string choice;
    Origin origin = Origin::kMeasured;
    bool used = false;
  };

  // Adds choices; existing ones do not change.
  void Add(const std::map<std::string, std::string>& choices, Origin origin)
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::map<std::string, std::string> Those(bool used_only) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool changed() const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Load(base::FileSystem& files, const std::string& path)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Save(base::FileSystem& files, const std::string& path)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string context_;
  mutable absl::Mutex mutex_;
  std::map<std::string, Entry, std::less<>> entries_ ABSL_GUARDED_BY(mutex_);
  bool changed_ ABSL_GUARDED_BY(mutex_) = false;  // since the last Save()
};

class KernelChoices {
 public:
  struct Options {
    base::FileSystem* files = nullptr;
    std::string folder;  // empty: no disk is read or written
    // Receives messages for the user, each sentence once; null: dropped.
    std::function<void(const std::string& words)> warn;
  };

  // Keeps choices in memory only.
  KernelChoices() : KernelChoices(Options()) {}
  explicit KernelChoices(Options options);
  KernelChoices(const KernelChoices&) = delete;
  KernelChoices& operator=(const KernelChoices&) = delete;
  // Calls Save().
  ~KernelChoices();

  // Takes the choices of a plan; call it before For().
  void Adopt(const ChoicesByDevice& choices) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the choices of the device and libraries that `context` names; the
  // first call reads their file. Valid as long as this object.
  DeviceChoices& For(const std::string& context) ABSL_LOCKS_EXCLUDED(mutex_);

  // Return the choices that devices have found or agreed on, and these plus the
  // recorded choices that no device has used yet.
  ChoicesByDevice InUse() const { return Those(/*used_only=*/true); }
  ChoicesByDevice Known() const { return Those(/*used_only=*/false); }

  // Writes the files that have new choices.
  void Save() ABSL_LOCKS_EXCLUDED(mutex_);

  void Warn(const std::string& words) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the file of a context in the folder:
  // "nvidia-h200-0123456789abcdef.txt".
  static std::string FileName(const std::string& context);

 private:
  ChoicesByDevice Those(bool used_only) const ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  mutable absl::Mutex mutex_;
  ChoicesByDevice adopted_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::unique_ptr<DeviceChoices>> devices_
      ABSL_GUARDED_BY(mutex_);
  std::set<std::string> told_ ABSL_GUARDED_BY(mutex_);
};

// Returns the folder for choices on this machine:
// $XDG_CACHE_HOME/troupe/kernels, or ~/.cache/troupe/kernels; empty if neither
// variable is set. The arguments are the values of both variables; empty: not
// set.
std::string KernelCacheFolder(const std::string& xdg_cache_home,
                              const std::string& home);

}  // namespace troupe::nn

#endif  // NN_KERNELS_KERNEL_CHOICES_H_
