#include "base/files/file_system.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/base/faulty_file_system.h"
#include "tests/base/fresh_path.h"

namespace troupe::base {
namespace {

using Names = std::vector<std::string>;

class FileSystemTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = FreshPath();
    ASSERT_TRUE(files_.CreateFolder(root_).ok());
  }
  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteWholeFile(files_, root_ + "/" + name, text).ok());
  }
  std::string Read(const std::string& name) {
    return ReadWholeFile(files_, root_ + "/" + name, 100).value_or("?");
  }

  PosixFileSystem files_;
  std::string root_;
};

TEST_F(FileSystemTest, WritesAndReads) {
  Write("a", "first");
  Write("a", "second");
  EXPECT_EQ(Read("a"), "second");
  EXPECT_TRUE(files_.Exists(root_ + "/a"));
  EXPECT_FALSE(files_.Exists(root_ + "/b"));
}

// The last writer comes when the first one has closed the file.
TEST_F(FileSystemTest, WritersShareAFile) {
  const std::string path = root_ + "/shared";
  const auto open = [&] { return *files_.OpenToShare(path, /*bytes=*/9); };
  const std::unique_ptr<SharedFile> first = open(), second = open();
  ASSERT_TRUE(second->WriteAt(3, "def").ok());
  ASSERT_TRUE(first->WriteAt(0, "ab").ok());
  ASSERT_TRUE(first->WriteAt(2, "c").ok());
  ASSERT_TRUE(first->Sync().ok());
  ASSERT_TRUE(first->Close().ok());
  EXPECT_EQ(Read("shared"), std::string("abcdef\0\0\0", 9));
  const std::unique_ptr<SharedFile> last = open();
  ASSERT_TRUE(last->WriteAt(6, "ghi").ok());
  ASSERT_TRUE(last->Close().ok());
  ASSERT_TRUE(second->Close().ok());
  EXPECT_EQ(Read("shared"), "abcdefghi");
  EXPECT_EQ(files_.OpenToShare(root_ + "/none/a", 9).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(FileSystemTest, ReadingPastTheEnd) {
  Write("a", "12345");
  const auto file = files_.Open(root_ + "/a");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ((*file)->size(), 5);
  std::string into(4, ' ');
  ASSERT_TRUE((*file)->ReadAt(1, absl::MakeSpan(into)).ok());
  EXPECT_EQ(into, "2345");
  EXPECT_EQ((*file)->ReadAt(3, absl::MakeSpan(into)).code(),
            absl::StatusCode::kDataLoss);
}

TEST_F(FileSystemTest, Folders) {
  const std::string deep = root_ + "/x/y/z";
  ASSERT_TRUE(files_.CreateFolder(deep).ok());
  ASSERT_TRUE(files_.CreateFolder(deep).ok());
  ASSERT_TRUE(files_.SyncFolder(deep).ok());
  Write("x/y/b", "");
  Write("x/y/a", "");
  EXPECT_EQ(files_.List(root_ + "/x/y").value(), (Names{"a", "b", "z"}));
  ASSERT_TRUE(files_.RemoveAll(root_ + "/x").ok());
  EXPECT_EQ(files_.List(root_).value(), Names{});
  EXPECT_TRUE(files_.RemoveAll(root_ + "/x").ok()) << "nothing there is fine";
}

TEST_F(FileSystemTest, RenameAndExchange) {
  Write("a", "A");
  Write("b", "B");
  ASSERT_TRUE(files_.Exchange(root_ + "/a", root_ + "/b").ok());
  EXPECT_EQ(Read("a") + Read("b"), "BA");
  ASSERT_TRUE(files_.Rename(root_ + "/a", root_ + "/c").ok());
  EXPECT_EQ(files_.List(root_).value(), (Names{"b", "c"}));
}

// The four changes: remove a leftover, rename b to a.aside, a to b, a.aside to
// a.
TEST_F(FileSystemTest, ExchangeByRenamesLosesNothing) {
  const std::string a = root_ + "/a", b = root_ + "/b";
  for (int fail = 0; fail <= 4; ++fail) {
    Write("a", "A");
    Write("b", "B");
    Write("a.aside", "left by a crash");
    FaultyFileSystem faulty;
    if (fail < 4) faulty.FailAt(fail, EIO);
    EXPECT_EQ(ExchangeByRenames(faulty, a, b).ok(), fail == 4) << fail;
    EXPECT_EQ(faulty.failed(), fail < 4);
    EXPECT_EQ(Read("a") + Read("b"), fail == 4 ? "BA" : "AB") << fail;
    EXPECT_EQ(files_.Exists(a + ".aside"), fail == 0) << fail;
  }
}

TEST_F(FileSystemTest, ExchangeByRenamesSaysWhereThingsAre) {
  Write("a", "A");
  Write("b", "B");
  FaultyFileSystem faulty;
  faulty.CrashAt(2);
  const std::string a = root_ + "/a", b = root_ + "/b";
  EXPECT_EQ(ExchangeByRenames(faulty, a, b).message(),
            "cannot rename to " + b + ": Input/output error; check the disk; " +
                "what was " + b + " is called " + a + ".aside now");
  EXPECT_EQ(Read("a.aside"), "B");
}

TEST_F(FileSystemTest, ErrorsSayWhatWhereAndWhatToDo) {
  Write("file", "text");
  const std::string file = root_ + "/file";
  EXPECT_EQ(files_.Create(root_ + "/no/such").status(),
            absl::NotFoundError("cannot create " + root_ +
                                "/no/such: No such file or directory; check "
                                "the path"));
  EXPECT_EQ(files_.CreateFolder(file).message(),
            "cannot create folder " + file +
                ": Not a directory; something else has that name: use another "
                "path or remove it");
  EXPECT_EQ(files_.Open(root_).status().message(),
            "cannot read " + root_ + ": it is not a file; check the path");
  for (const std::string target : {"gone/a.bin", "/no/where", "link"}) {
    ASSERT_TRUE(files_.RemoveAll(root_ + "/link").ok());
    ASSERT_TRUE(files_.MakeLink(target, root_ + "/link").ok());
    const std::string message = "cannot read " + root_ +
                                "/link: it is a link to " + target +
                                ", which is not there; restore that or remove "
                                "the link";
    EXPECT_EQ(files_.Open(root_ + "/link").status().message(), message);
    EXPECT_EQ(files_.ReadToEnd(root_ + "/link", 9).status().message(), message);
  }
  EXPECT_EQ(ReadWholeFile(files_, file, 3).status(),
            absl::ResourceExhaustedError(
                "cannot read " + file +
                ": it has 4 bytes, at most 3 are expected; check the path"));
  EXPECT_EQ(FileError(ENOSPC, "write", "a"),
            absl::ResourceExhaustedError(
                "cannot write a: No space left on device; free space there or "
                "write to another disk"));
  EXPECT_EQ(FileError(EROFS, "create", "a").message(),
            "cannot create a: Read-only file system; use a path on a disk that "
            "may be written");
  EXPECT_EQ(FileError(EFBIG, "write", "a"),
            absl::ResourceExhaustedError(
                "cannot write a: File too large; raise the limit on file sizes "
                "(ulimit -f)"));
}

TEST_F(FileSystemTest, WholeFilesAreTextOrBytes) {
  const std::string file = root_ + "/bytes";
  ASSERT_TRUE(WriteWholeFile(files_, file, "a\xff").ok());
  EXPECT_EQ(*ReadWholeFile(files_, file, 2), "a\xff");
  EXPECT_EQ(*ReadBytes(files_, file, 2), (std::vector<std::uint8_t>{97, 255}));
  EXPECT_EQ(ReadBytes(files_, file, 1).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(FileSystemTest, APipeIsNoFile) {
  const std::string pipe = root_ + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(ReadBytes(files_, pipe, 10).status().message(),
            "cannot read " + pipe + ": it is not a file; check the path");
}

TEST_F(FileSystemTest, ALockHasOneHolder) {
  const std::string path = root_ + "/lock";
  auto lock = files_.Lock(path, "the first");
  ASSERT_TRUE(lock.ok()) << lock.status();
  EXPECT_EQ(files_.Lock(path, "the second").status(),
            absl::UnavailableError("cannot lock " + path +
                                   ": it is held by the first; wait for it to "
                                   "end, or stop it, or use another path"));
  EXPECT_EQ(Read("lock"), "the first\n");
  lock->reset();
  lock = files_.Lock(path, "2nd");
  ASSERT_TRUE(lock.ok()) << lock.status();
  EXPECT_EQ(Read("lock"), "2nd\n") << "and no rest of the first";
  // Whatever another program wrote to the file, the message has one line.
  Write("lock", "a\nb");
  EXPECT_EQ(files_.Lock(path, "3rd").status().message(),
            "cannot lock " + path +
                ": it is held by a\\nb; wait for it to end, or stop it, or use "
                "another path");
  Write("lock", "");
  EXPECT_EQ(files_.Lock(path, "3rd").status().message(),
            "cannot lock " + path +
                ": it is held by another process; wait for it to end, or stop "
                "it, or use another path");
  EXPECT_EQ(files_.Lock(root_ + "/no/lock", "me").status().message(),
            "cannot lock " + root_ +
                "/no/lock: No such file or directory; check the path");
}

TEST_F(FileSystemTest, ALockDiesWithItsProcess) {
  const std::string path = root_ + "/lock";
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto lock = files_.Lock(path, "the child");
    if (lock.ok() && write(ready[1], "!", 1) == 1) pause();
    _exit(1);
  }
  close(ready[1]);
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  EXPECT_TRUE(absl::IsUnavailable(files_.Lock(path, "me").status()));
  ASSERT_EQ(kill(child, SIGKILL), 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(Read("lock"), "the child\n") << "nobody has cleaned up";
  const auto lock = files_.Lock(path, "me");
  EXPECT_TRUE(lock.ok()) << lock.status();
}

TEST_F(FileSystemTest, ANewFolderIsOnTheDisk) {
  FaultyFileSystem logged;
  const std::string folder = root_ + "/a/b";
  ASSERT_TRUE(CreateFolderOnDisk(logged, folder).ok());
  ASSERT_TRUE(CreateFolderOnDisk(logged, folder).ok());
  EXPECT_EQ(logged.log(),
            (Names{"create folder " + folder, "sync folder " + root_ + "/a",
                   "create folder " + folder}));
}

TEST_F(FileSystemTest, ReadsToTheEndOfAFileOrAPipe) {
  Write("file", "text");
  EXPECT_EQ(*files_.ReadToEnd(root_ + "/file", 4), "text");
  EXPECT_EQ(files_.ReadToEnd(root_ + "/file", 3).status(),
            absl::ResourceExhaustedError(
                "cannot read " + root_ +
                "/file: it has more than the 3 bytes that are expected; check "
                "the path"));
  EXPECT_EQ(files_.ReadToEnd(root_, 4).status().message(),
            "cannot read " + root_ + ": it is not a file; check the path");
  EXPECT_EQ(files_.ReadToEnd(root_ + "/none", 4).status().code(),
            absl::StatusCode::kNotFound);
  const std::string pipe = root_ + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const std::string long_text(100000, 'x');  // more than a pipe holds
  std::thread writer([&] {
    std::ofstream(pipe, std::ios::binary) << long_text;  // no fsync: a pipe
  });
  EXPECT_EQ(*files_.ReadToEnd(pipe, 100000), long_text);
  writer.join();
}

TEST(JoinPathTest, TakesNoFolderAndATrailingSlash) {
  EXPECT_EQ(JoinPath("a", "b"), "a/b");
  EXPECT_EQ(JoinPath("a/", "b"), "a/b");
  EXPECT_EQ(JoinPath("", "b"), "b");
}

TEST_F(FileSystemTest, ReadsFailWhenPlanned) {
  const std::string file = root_ + "/a";
  FaultyFileSystem faulty;
  ASSERT_TRUE(WriteWholeFile(faulty, file, "text").ok());
  for (int read : {0, 1}) {  // open, read
    faulty.FailReadAt(faulty.reads() + read, EIO);
    EXPECT_EQ(ReadWholeFile(faulty, file, 4).status().message(),
              "cannot read " + file + ": Input/output error; check the disk");
  }
  EXPECT_TRUE(faulty.failed());
  EXPECT_EQ(*ReadWholeFile(faulty, file, 4), "text");
}

TEST_F(FileSystemTest, FaultsComeWhenPlanned) {
  FaultyFileSystem faulty;
  faulty.FailAt(2, ENOSPC);  // create, append, sync, close
  EXPECT_EQ(WriteWholeFile(faulty, root_ + "/a", "text").code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(faulty.failed());
  EXPECT_TRUE(WriteWholeFile(faulty, root_ + "/a", "text").ok());
  EXPECT_EQ(faulty.changes(), 3 + 4);
  faulty.CrashAt(faulty.changes());
  EXPECT_FALSE(faulty.CreateFolder(root_ + "/b").ok());
  EXPECT_FALSE(faulty.RemoveAll(root_ + "/a").ok());
  EXPECT_EQ(files_.List(root_).value(), Names{"a"});
}

}  // namespace
}  // namespace troupe::base
