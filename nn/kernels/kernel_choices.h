// The algorithms that the ranks of a process compute with, where a library
// offers several that differ in speed and in last bits (choice_cache.h). One
// object for a process: what one rank has measured, all take.
//
//   KernelChoices::Options options;
//   options.files = &files;
//   options.folder = "cache/troupe/kernels";
//   options.warn = [](const std::string& words) { std::cerr << words; };
//   auto choices = std::make_shared<KernelChoices>(options);
//   choices->Adopt(plan_of_the_checkpoint);           // goes before the disk
//   DeviceChoices& device = choices->For("NVIDIA H200, cuDNN 9.19.0");
//   if (auto choice = device.Find(key)) return Use(*choice);
//   Use(device.Agree(key, /*mine=*/"lt.01", Origin::kMeasured));
//   choices->InUse();                                 // for the next plan
//
// Order of what is believed: a plan's choices, then those on disk, then the
// first rank that measures. The folder has one file for each device and its
// libraries; what several processes write there is merged. A file that cannot
// be used is told once, by its name, and replaced; so is a folder that cannot
// be written, and neither is an error.
//
// Threads: any. Lifetime: `files` and what DeviceChoices is used by do not
// outlive the object. Cost: Find() and Agree() take a lock and look once;
// For() may read a file, Save() writes those that have something new.

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
#include "base/file_system.h"

namespace troupe::nn {

// Algorithms by key, for each device and its libraries (a context of
// choice_cache.h).
using ChoicesByDevice =
    std::map<std::string, std::map<std::string, std::string>>;

// Where a choice comes from. Only measured ones go to the disk; all that is
// used goes into a plan.
enum class Origin { kPlan, kDisk, kMeasured, kGuessed };

// The choices of one kind of device.
class DeviceChoices {
 public:
  explicit DeviceChoices(const std::string& context) : context_(context) {}

  const std::string& context() const { return context_; }

  // The choice on record; counts as used from now on.
  std::optional<std::string> Find(absl::string_view key)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Records `mine`, unless another rank was first. Returns what all are to use.
  // `refused`: a choice on record that the library does not take; gives way.
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

  // What is there already stays.
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
  bool changed_ ABSL_GUARDED_BY(mutex_) = false;  // since it was saved
};

class KernelChoices {
 public:
  struct Options {
    base::FileSystem* files = nullptr;
    std::string folder;  // empty: nothing is read from a disk or written
    // Takes words for the user, each sentence once; null: nobody reads them.
    std::function<void(const std::string& words)> warn;
  };

  // In memory alone.
  KernelChoices() : KernelChoices(Options()) {}
  explicit KernelChoices(Options options);
  KernelChoices(const KernelChoices&) = delete;
  KernelChoices& operator=(const KernelChoices&) = delete;
  // Saves.
  ~KernelChoices();

  // Takes the choices of a plan, before any device asks.
  void Adopt(const ChoicesByDevice& choices) ABSL_LOCKS_EXCLUDED(mutex_);

  // Those of the device and libraries that `context` names; reads their file
  // when it is asked first. Valid as long as this object.
  DeviceChoices& For(const std::string& context) ABSL_LOCKS_EXCLUDED(mutex_);

  // What the devices that asked have found or agreed on, and that with what
  // they might still use.
  ChoicesByDevice InUse() const { return Those(/*used_only=*/true); }
  ChoicesByDevice Known() const { return Those(/*used_only=*/false); }

  // Writes what is new.
  void Save() ABSL_LOCKS_EXCLUDED(mutex_);

  void Warn(const std::string& words) ABSL_LOCKS_EXCLUDED(mutex_);

  // The file of a context in the folder: "nvidia-h200-0123456789abcdef.txt".
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

// Where choices are kept on this machine: $XDG_CACHE_HOME/troupe/kernels, or
// ~/.cache/troupe/kernels; empty where neither variable says where. Values of
// the two variables, empty: not set.
std::string KernelCacheFolder(const std::string& xdg_cache_home,
                              const std::string& home);

}  // namespace troupe::nn

#endif  // NN_KERNELS_KERNEL_CHOICES_H_
