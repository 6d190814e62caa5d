#include "actors/checkpoint/claim.h"

#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "actors/checkpoint/layout.h"
#include "base/check.h"

namespace troupe::actors {
namespace {

constexpr std::int64_t kMarkBytesMax = 4096;

std::string ThisProcess() {
  char host[256] = {};
  const bool known = gethostname(host, sizeof(host) - 1) == 0;
  return absl::StrCat("process ", getpid(), " on ",
                      known ? host : "an unknown host", ", since ",
                      absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", absl::Now(),
                                       absl::UTCTimeZone()));
}

// Renames a checkpoint back that a crash has left under its temporary name: on
// a disk that cannot replace a folder in one step, the earlier one is renamed
// before the new one takes its name.
absl::Status RestoreAside(base::FileSystem& files, const std::string& dir,
                          const std::string& name, std::int64_t step) {
  const std::string path = absl::StrCat(dir, "/", CheckpointName(step));
  if (!absl::EndsWith(name, base::kAsideSuffix) || files.Exists(path)) {
    return absl::OkStatus();
  }
  TROUPE_RETURN_IF_ERROR(files.Rename(absl::StrCat(dir, "/", name), path));
  return files.SyncFolder(dir);
}

// Removes the unfinished checkpoints in `dir`, which only crashed runs leave.
absl::Status RemoveUnfinished(base::FileSystem& files, const std::string& dir) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                          files.List(dir));
  for (const std::string& name : names) {
    const auto step = ParseTemporaryName(name);
    if (!step) continue;
    TROUPE_RETURN_IF_ERROR(RestoreAside(files, dir, name, *step));
    TROUPE_RETURN_IF_ERROR(files.RemoveAll(absl::StrCat(dir, "/", name)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<base::FileLock>> ClaimCheckpoints(
    base::FileSystem& files, const std::string& dir) {
  TROUPE_RETURN_IF_ERROR(base::CreateFolderOnDisk(files, dir));
  absl::StatusOr<std::unique_ptr<base::FileLock>> lock =
      files.Lock(absl::StrCat(dir, "/", kLockName), ThisProcess());
  // Without locks on the disk no run is kept out (docs/checkpoints.md).
  if (absl::IsUnimplemented(lock.status())) return nullptr;
  if (absl::IsUnavailable(lock.status())) {
    return absl::UnavailableError(
        absl::StrCat("another run writes checkpoints into ", dir, ": ",
                     lock.status().message()));
  }
  TROUPE_RETURN_IF_ERROR(lock.status());
  TROUPE_RETURN_IF_ERROR(RemoveUnfinished(files, dir));
  return *std::move(lock);
}

absl::StatusOr<std::string> MarkFolder(base::FileSystem& files,
                                       const std::string& dir) {
  std::string mark = absl::StrCat(ThisProcess(), "\n");
  // Written in place: a network disk looks up the contents of a file anew when
  // it is opened, but may keep its name for some time.
  TROUPE_RETURN_IF_ERROR(
      base::WriteWholeFile(files, base::JoinPath(dir, kMarkName), mark));
  return mark;
}

absl::Status CheckMark(base::FileSystem& files, const std::string& dir,
                       const std::string& mark) {
  const std::string path = base::JoinPath(dir, kMarkName);
  const absl::StatusOr<std::string> seen = files.ReadToEnd(path, kMarkBytesMax);
  if (seen.ok() && *seen == mark) return absl::OkStatus();
  const std::string here = seen.ok() ? "it is of another job here"
                           : absl::IsNotFound(seen.status())
                               ? "it is not there for this process"
                               : std::string(seen.status().message());
  return absl::FailedPreconditionError(absl::StrCat(
      "process 0 has just written ", path, ", and ", here,
      "; give all processes one folder for checkpoints, by its absolute path: "
      "on a disk that their hosts share"));
}

}  // namespace troupe::actors
