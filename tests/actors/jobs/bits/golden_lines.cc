#include "tests/actors/jobs/bits/golden_lines.h"

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "absl/strings/ascii.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

struct GoldenFile {
  std::string comments;
  std::map<std::string, std::string> lines;  // value by name
};

GoldenFile Read(const std::string& path) {
  GoldenFile golden;
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  for (std::string line; std::getline(file, line);) {
    if (line.empty()) continue;
    if (line[0] == '#') {
      golden.comments += line + "\n";
      continue;
    }
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) {
      ADD_FAILURE() << path << ": no \": \" in the line " << line;
      continue;
    }
    golden.lines[line.substr(0, colon)] = line.substr(colon + 2);
  }
  return golden;
}

void Write(const std::string& path, const GoldenFile& golden) {
  std::ofstream file(path);
  file << golden.comments;
  for (const auto& [name, value] : golden.lines) {
    file << name << ": " << value << "\n";
  }
  EXPECT_TRUE(file.flush().good()) << path;
}

const char* RewrittenPath() { return std::getenv("TROUPE_REWRITE"); }

}  // namespace

bool RewritesGoldenLines() { return RewrittenPath() != nullptr; }

bool ExpectGoldenLine(const std::string& path, const std::string& name,
                      const std::string& value) {
  if (RewritesGoldenLines()) {
    GoldenFile golden = Read(RewrittenPath());
    golden.lines[name] = value;
    Write(RewrittenPath(), golden);
    return true;
  }
  const GoldenFile golden = Read(path);
  const auto line = golden.lines.find(name);
  if (line == golden.lines.end()) {
    ADD_FAILURE() << path << " has no line \"" << name << "\"";
    return false;
  }
  EXPECT_EQ(line->second, value) << path << ", line \"" << name << "\"";
  return line->second == value;
}

void ExpectNoOtherGoldenLines(const std::string& path,
                              const std::set<std::string>& names) {
  const bool rewrites = RewritesGoldenLines();
  GoldenFile golden = Read(rewrites ? RewrittenPath() : path);
  for (auto line = golden.lines.begin(); line != golden.lines.end();) {
    if (names.count(line->first) > 0) {
      ++line;
      continue;
    }
    EXPECT_TRUE(rewrites) << path << " has the line \"" << line->first
                          << "\", which no case has";
    line = golden.lines.erase(line);
  }
  if (rewrites) Write(RewrittenPath(), golden);
}

std::string TestNameOf(std::string line_name) {
  for (char& c : line_name) {
    if (!absl::ascii_isalnum(c)) c = '_';
  }
  return line_name;
}

}  // namespace troupe
