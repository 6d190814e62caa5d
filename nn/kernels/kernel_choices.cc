#include "nn/kernels/kernel_choices.h"

#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/fnv_hash.h"
#include "nn/kernels/choice_cache.h"

namespace troupe::nn {
namespace {

// Limit on attempts to save while other processes save: each of them needs
// milliseconds, and so does this number of attempts.
constexpr int kSaveAttempts = 10'000;

// Number of characters of a file's name that are taken from the context.
constexpr std::size_t kSlugBytesMax = 48;

}  // namespace

std::optional<std::string> DeviceChoices::Find(absl::string_view key) {
  const absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return std::nullopt;
  found->second.used = true;
  return found->second.choice;
}

std::string DeviceChoices::Agree(absl::string_view key, const std::string& mine,
                                 Origin origin, absl::string_view refused) {
  TROUPE_CHECK(ChoiceCache::IsKey(key) && ChoiceCache::IsChoice(mine),
               "keys and choices are words");
  const absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(key);
  if (found != entries_.end() && found->second.choice != refused) {
    found->second.used = true;
    return found->second.choice;
  }
  if (found == entries_.end() && entries_.size() >= ChoiceCache::kEntriesMax) {
    return mine;
  }
  entries_[std::string(key)] = {mine, origin, /*used=*/true};
  changed_ = changed_ || origin == Origin::kMeasured;
  return mine;
}

void DeviceChoices::Add(const std::map<std::string, std::string>& choices,
                        Origin origin) {
  const absl::MutexLock lock(&mutex_);
  for (const auto& [key, choice] : choices) {
    if (entries_.size() >= ChoiceCache::kEntriesMax) return;
    entries_.try_emplace(key, Entry{choice, origin, /*used=*/false});
  }
}

std::map<std::string, std::string> DeviceChoices::Those(bool used_only) const {
  const absl::MutexLock lock(&mutex_);
  std::map<std::string, std::string> choices;
  for (const auto& [key, entry] : entries_) {
    if (entry.used || !used_only) choices[key] = entry.choice;
  }
  return choices;
}

bool DeviceChoices::changed() const {
  const absl::MutexLock lock(&mutex_);
  return changed_;
}

absl::Status DeviceChoices::Load(base::FileSystem& files,
                                 const std::string& path) {
  ChoiceCache cache(context_);
  TROUPE_RETURN_IF_ERROR(LoadChoices(files, path, cache));
  Add(cache.choices(), Origin::kDisk);
  return absl::OkStatus();
}

absl::Status DeviceChoices::Save(base::FileSystem& files,
                                 const std::string& path) {
  ChoiceCache cache(context_);
  {
    const absl::MutexLock lock(&mutex_);
    if (!changed_) return absl::OkStatus();
    for (const auto& [key, entry] : entries_) {
      if (entry.origin == Origin::kMeasured) cache.Put(key, entry.choice);
    }
    changed_ = false;
  }
  absl::Status saved = absl::OkStatus();
  for (int attempt = 0; attempt < kSaveAttempts; ++attempt) {
    saved = SaveChoices(files, path, cache);
    if (!absl::IsUnavailable(saved)) break;
    std::this_thread::yield();
  }
  if (saved.ok()) return saved;
  const absl::MutexLock lock(&mutex_);
  changed_ = true;
  return saved;
}

KernelChoices::KernelChoices(Options options) : options_(std::move(options)) {
  TROUPE_CHECK(options_.folder.empty() || options_.files != nullptr,
               "a folder is on some file system");
}

KernelChoices::~KernelChoices() { Save(); }

void KernelChoices::Adopt(const ChoicesByDevice& choices) {
  const absl::MutexLock lock(&mutex_);
  for (const auto& [context, entries] : choices) {
    adopted_[context].insert(entries.begin(), entries.end());
  }
}

DeviceChoices& KernelChoices::For(const std::string& context) {
  std::string words;
  DeviceChoices* device = nullptr;
  {
    const absl::MutexLock lock(&mutex_);
    std::unique_ptr<DeviceChoices>& made = devices_[context];
    if (made != nullptr) return *made;
    made = std::make_unique<DeviceChoices>(context);
    device = made.get();
    const auto adopted = adopted_.find(context);
    if (adopted != adopted_.end()) {
      device->Add(adopted->second, Origin::kPlan);
    } else if (!adopted_.empty()) {
      words =
          absl::StrCat("the checkpoint's algorithms are for ",
                       adopted_.begin()->first, ", and this is ", context,
                       ": they are chosen anew, and may give other last bits");
    }
    if (!options_.folder.empty()) {
      const std::string path =
          base::JoinPath(options_.folder, FileName(context));
      const absl::Status loaded = device->Load(*options_.files, path);
      if (!loaded.ok()) {
        absl::StrAppend(&words, words.empty() ? "" : "\n", loaded.message(),
                        "; what it has is not used, and measured again");
      }
    }
  }
  if (!words.empty()) Warn(words);
  return *device;
}

ChoicesByDevice KernelChoices::Those(bool used_only) const {
  const absl::MutexLock lock(&mutex_);
  ChoicesByDevice all;
  for (const auto& [context, device] : devices_) {
    std::map<std::string, std::string> choices = device->Those(used_only);
    if (!choices.empty()) all[context] = std::move(choices);
  }
  return all;
}

void KernelChoices::Save() {
  if (options_.folder.empty()) return;
  absl::Status failed = absl::OkStatus();
  {
    const absl::MutexLock lock(&mutex_);
    for (const auto& [context, device] : devices_) {
      if (!device->changed()) continue;
      absl::Status saved = options_.files->CreateFolder(options_.folder);
      if (saved.ok()) {
        saved =
            device->Save(*options_.files,
                         base::JoinPath(options_.folder, FileName(context)));
      }
      if (failed.ok()) failed = saved;
    }
  }
  if (failed.ok()) return;
  Warn(absl::StrCat(failed.message(),
                    "; algorithms that were measured are not kept, and later "
                    "runs measure them again"));
}

void KernelChoices::Warn(const std::string& words) {
  {
    const absl::MutexLock lock(&mutex_);
    if (!told_.insert(words).second) return;
  }
  if (options_.warn) options_.warn(words);
}

std::string KernelChoices::FileName(const std::string& context) {
  std::string slug;
  for (const char c : context.substr(0, context.find(','))) {
    const bool plain = absl::ascii_isalnum(static_cast<unsigned char>(c));
    slug.push_back(plain ? absl::ascii_tolower(static_cast<unsigned char>(c))
                         : '-');
    if (slug.size() == kSlugBytesMax) break;
  }
  base::FnvHash hash;
  hash.AddBytes(context.data(), context.size());
  return absl::StrCat(slug, "-", absl::Hex(hash.value(), absl::kZeroPad16),
                      ".txt");
}

std::string KernelCacheFolder(const std::string& xdg_cache_home,
                              const std::string& home) {
  // XDG: a relative path counts as not set.
  if (!xdg_cache_home.empty() && xdg_cache_home[0] == '/') {
    return base::JoinPath(xdg_cache_home, "troupe/kernels");
  }
  return home.empty() ? "" : base::JoinPath(home, ".cache/troupe/kernels");
}

}  // namespace troupe::nn
