#include "tools/trainer/commands/certs_command.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/files/file_system.h"
#include "base/tls/certificate_check.h"
#include "base/tls/certificates.h"
#include "gtest/gtest.h"
#include "tests/base/fresh_path.h"

namespace troupe::tools {
namespace {

class CertsCommandTest : public ::testing::Test {
 protected:
  void SetUp() override { root_ = base::FreshPath(); }
  // Returns the text for the user.
  std::string Make(const std::vector<std::string>& arguments) {
    std::vector<std::string> all = {"--dir=" + root_};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const absl::StatusOr<CertsOptions> options = ParseCerts(all);
    if (!options.ok()) return std::string(options.status().message());
    const absl::StatusOr<std::string> text = MakeCerts(*options, now_);
    return text.ok() ? *text : std::string(text.status().message());
  }
  absl::Status Check(const std::string& host, absl::Time at) {
    return base::tls::CheckCertificates(
        base::tls::CertificatesIn(root_ + "/" + host), at);
  }

  const absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
  base::PosixFileSystem files_;
  std::string root_;
};

TEST_F(CertsCommandTest, OneFolderForAllNodes) {
  EXPECT_EQ(Make({}),
            absl::StrCat("made the authority in ", root_,
                         "; its authority.key stays there\nmade ", root_,
                         "/node: copy it to every node, and start there with "
                         "--certs=DIR\n"));
  EXPECT_EQ(Check("node", now_), absl::OkStatus());
  EXPECT_EQ(Check("node", now_ + absl::Hours(364 * 24)), absl::OkStatus());
  EXPECT_FALSE(Check("node", now_ + absl::Hours(366 * 24)).ok());
  // The folders to copy lack the key of the authority.
  EXPECT_EQ(
      *files_.List(root_ + "/node"),
      (std::vector<std::string>{"authority.pem", "node.key", "node.pem"}));
}

TEST_F(CertsCommandTest, AFolderForEachHostAndMoreLater) {
  Make({"--hosts=n1,10.0.0.7", "--days=2"});
  EXPECT_EQ(Check("n1", now_), absl::OkStatus());
  EXPECT_EQ(Check("10.0.0.7", now_), absl::OkStatus());
  EXPECT_FALSE(Check("n1", now_ + absl::Hours(49)).ok());
  EXPECT_EQ(Make({"--hosts", "n2"}),
            absl::StrCat("used the authority in ", root_,
                         "; its authority.key stays there\nmade ", root_,
                         "/n2: copy it to n2, and start there with "
                         "--certs=DIR\n"));
  EXPECT_EQ(Check("n2", now_), absl::OkStatus());
  // All nodes have one authority.
  base::tls::CertificateFiles mixed = base::tls::CertificatesIn(root_ + "/n2");
  mixed.authority = root_ + "/n1/authority.pem";
  EXPECT_EQ(base::tls::CheckCertificates(mixed, now_), absl::OkStatus());
  // A node's certificate is valid no longer than its authority's.
  EXPECT_FALSE(Check("n2", now_ + absl::Hours(49)).ok());
}

TEST_F(CertsCommandTest, NothingIsOverwritten) {
  Make({"--hosts=n1"});
  EXPECT_EQ(Make({"--hosts=n2,n1"}),
            absl::StrCat(root_,
                         "/n1 is there already, and nothing is "
                         "overwritten; remove it, or use another "
                         "--dir"));
}

TEST_F(CertsCommandTest, RefusesWhatItDoesNotUnderstand) {
  EXPECT_EQ(Make({"--host=n1"}),
            "unknown option --host; run \"trainer certs --help\" for a list");
  EXPECT_EQ(Make({"--days=0"}), "--days=0: must be a number from 1 to 3650");
  EXPECT_EQ(Make({"--days"}), "--days needs a value; write --days=365");
  EXPECT_EQ(Make({"--hosts=../n1"}),
            "\"../n1\" is no name or address of a host; write one such as "
            "node1.example.org or 10.0.0.7");
  EXPECT_FALSE(files_.Exists(root_));
  EXPECT_EQ(ParseCerts({}).status(),
            absl::InvalidArgumentError("no folder for the certificates is "
                                       "given; write --dir=certs"));
  EXPECT_TRUE(ParseCerts({"--help"})->help);
}

}  // namespace
}  // namespace troupe::tools
