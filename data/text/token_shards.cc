#include "data/text/token_shards.h"

#include <fnmatch.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "data/text/file_pool.h"

namespace troupe::data {
namespace {

constexpr const char* kTestWords[] = {"val", "valid", "validation", "dev",
                                      "test"};

// The folder, which ends in "/" or is empty, and the pattern of names in it.
std::pair<std::string, std::string> SplitPattern(const std::string& path) {
  const std::size_t end = path.rfind('/');
  if (end == std::string::npos) return {"", path};
  return {path.substr(0, end + 1), path.substr(end + 1)};
}

bool IsTestName(const std::string& name) {
  std::string words = absl::AsciiStrToLower(name);
  for (char& c : words) {
    if (!absl::ascii_isalpha(static_cast<unsigned char>(c))) c = ' ';
  }
  for (absl::string_view word : absl::StrSplit(words, ' ')) {
    for (const char* test : kTestWords) {
      if (word == test) return true;
    }
  }
  return false;
}

absl::StatusOr<std::vector<std::string>> NamesLike(base::FileSystem& files,
                                                   const std::string& path) {
  const auto [folder, pattern] = SplitPattern(path);
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                          files.List(folder.empty() ? "." : folder));
  std::vector<std::string> names;
  for (const std::string& name : all) {
    if (fnmatch(pattern.c_str(), name.c_str(), FNM_PERIOD) == 0) {
      names.push_back(name);
    }
  }
  if (names.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no file is called ", path,
                     "; give a pattern of the names of token files"));
  }
  if (names.size() > kTokenFilesMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat(names.size(), " files are called ", path, ", more than ",
                     kTokenFilesMax, "; join some"));
  }
  return names;
}

}  // namespace

bool IsTokenPattern(absl::string_view path) {
  return path.find_first_of("*?[") != absl::string_view::npos;
}

absl::StatusOr<TokenShards> OpenTokenShards(
    std::shared_ptr<base::FileSystem> files, const std::string& pattern,
    const TokenFileOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                          NamesLike(*files, pattern));
  const auto pool =
      std::make_shared<FilePool>(std::move(files), kOpenTokenFilesMax);
  std::vector<TokenSourcePtr> train, test;
  for (const std::string& name : names) {
    const std::string path = absl::StrCat(SplitPattern(pattern).first, name);
    TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<base::ReadableFile> file,
                            FilePool::Open(pool, path));
    TROUPE_ASSIGN_OR_RETURN(TokenSourcePtr tokens,
                            OpenTokenFile(std::move(file), path, options));
    (IsTestName(name) ? test : train).push_back(std::move(tokens));
  }
  TokenShards shards;
  shards.only_tests = train.empty();
  if (shards.only_tests) std::swap(train, test);
  shards.note = absl::StrCat(pattern, ": ", train.size(),
                             train.size() == 1 ? " file" : " files",
                             " of tokens to train on");
  if (!test.empty()) {
    absl::StrAppend(&shards.note, ", ", test.size(), " to test with");
    shards.test = JoinTokenSources(std::move(test));
  }
  shards.train = JoinTokenSources(std::move(train));
  return shards;
}

}  // namespace troupe::data
