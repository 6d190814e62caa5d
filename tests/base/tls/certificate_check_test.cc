#include "base/tls/certificate_check.h"

#include <sys/stat.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files/file_system.h"
#include "base/tls/certificates.h"
#include "gtest/gtest.h"
#include "tests/base/fresh_path.h"

namespace troupe::base::tls {
namespace {

class CertificateCheckTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = FreshPath();
    options_.now = absl::FromUnixSeconds(1'800'000'000);  // 2027-01-15 08:00
    files_ = MakeAll("a");
  }

  CertificateFiles MakeAll(const std::string& name) {
    const std::string folder = JoinPath(root_, name);
    EXPECT_TRUE(MakePrivateFolder(folder).ok());
    const absl::StatusOr<Authority> authority = Authority::Make(options_);
    EXPECT_TRUE(authority.ok()) << authority.status();
    EXPECT_TRUE(authority->WriteCertificate(folder).ok());
    EXPECT_TRUE(authority->WriteNode(folder, {"n1"}, options_).ok());
    return CertificatesIn(folder);
  }
  std::string Check(absl::Duration later = absl::ZeroDuration()) {
    return std::string(
        CheckCertificates(files_, options_.now + later).message());
  }

  PosixFileSystem disk_;
  std::string root_;
  CertificateOptions options_;
  CertificateFiles files_;
};

TEST_F(CertificateCheckTest, AcceptsWhatIsWell) {
  EXPECT_EQ(Check(), "");
  EXPECT_EQ(Check(-absl::Minutes(59)), "");
  EXPECT_EQ(Check(options_.validity - absl::Minutes(1)), "");
}

TEST_F(CertificateCheckTest, NamesAFileThatIsNotThere) {
  for (std::string* path :
       {&files_.authority, &files_.certificate, &files_.key}) {
    const std::string was = *path;
    *path = root_ + "/none";
    EXPECT_EQ(Check(), absl::StrCat("cannot read ", *path,
                                    ": No such file or directory; check the "
                                    "path"));
    *path = was;
  }
}

TEST_F(CertificateCheckTest, NamesAFileOfAnotherKind) {
  files_.certificate = files_.key;
  EXPECT_EQ(Check(), absl::StrCat("cannot read ", files_.key,
                                  ": it has no certificate (no start line); it "
                                  "must be a PEM file"));
  files_ = CertificatesIn(root_ + "/a");
  files_.key = files_.certificate;
  EXPECT_TRUE(absl::StartsWith(
      Check(),
      absl::StrCat("cannot read ", files_.key, ": it has no private key (")))
      << Check();
}

TEST_F(CertificateCheckTest, RefusesADamagedFile) {
  std::string text = *ReadWholeFile(disk_, files_.certificate, 10000);
  text.insert(text.size() / 2, "?");
  ASSERT_TRUE(WriteWholeFile(disk_, files_.certificate, text).ok());
  EXPECT_EQ(Check(), absl::StrCat("cannot read ", files_.certificate,
                                  ": it has no certificate (bad base64 decode);"
                                  " it must be a PEM file"));
}

TEST_F(CertificateCheckTest, RefusesAKeyThatOthersMayRead) {
  ASSERT_EQ(chmod(files_.key.c_str(), 0644), 0);
  EXPECT_EQ(Check(), absl::StrCat("others than its owner may use ", files_.key,
                                  " (mode 0644); run chmod 600 ", files_.key));
  ASSERT_EQ(chmod(files_.key.c_str(), 0400), 0);
  EXPECT_EQ(Check(), "");
}

TEST_F(CertificateCheckTest, RefusesTheKeyOfAnother) {
  files_.key = MakeAll("b").key;
  EXPECT_EQ(Check(),
            absl::StrCat(files_.key, " is not the key of ", files_.certificate,
                         "; copy both from one folder of "
                         "certificates"));
}

TEST_F(CertificateCheckTest, RefusesWhatIsOver) {
  EXPECT_EQ(Check(options_.validity + absl::Minutes(1)),
            absl::StrCat(files_.certificate,
                         " was valid until 2027-01-22 08:00 UTC, and it is "
                         "2027-01-22 08:01 UTC here; make new certificates "
                         "(trainer certs), or set the clock"));
}

TEST_F(CertificateCheckTest, RefusesWhatHasNotBegun) {
  EXPECT_EQ(Check(-absl::Hours(2)),
            absl::StrCat(files_.certificate,
                         " is valid from 2027-01-15 07:00 UTC on, and it is "
                         "2027-01-15 06:00 UTC here; set this machine's clock "
                         "right"));
}

TEST_F(CertificateCheckTest, RefusesTheNodeOfAnotherAuthority) {
  files_.authority = MakeAll("b").authority;
  const std::string said = Check();
  EXPECT_TRUE(absl::StartsWith(
      said, absl::StrCat(files_.certificate, " was signed by \"Troupe ")))
      << said;
  EXPECT_TRUE(absl::StrContains(
      said,
      "(unable to get local issuer certificate); copy both from one "
      "folder of certificates"))
      << said;
}

}  // namespace
}  // namespace troupe::base::tls
