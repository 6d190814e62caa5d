#include "base/tls/certificates.h"

#include <openssl/ssl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/files/file_system.h"
#include "base/tls/certificate_check.h"
#include "gtest/gtest.h"
#include "tests/base/fresh_path.h"

namespace troupe::base::tls {
namespace {

using Context = std::unique_ptr<SSL_CTX, Freer<SSL_CTX_free>>;
using Tls = std::unique_ptr<SSL, Freer<SSL_free>>;

// Makes the TLS context of one side as the control plane does: it requires a
// certificate of its peer and, if `shows`, presents its own.
Context MakeContext(const CertificateFiles& files, bool shows) {
  Context context(SSL_CTX_new(TLS_method()));
  EXPECT_EQ(SSL_CTX_load_verify_locations(context.get(),
                                          files.authority.c_str(), nullptr),
            1);
  SSL_CTX_set_verify(context.get(),
                     SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                     nullptr);
  if (!shows) return context;
  EXPECT_EQ(SSL_CTX_use_certificate_chain_file(context.get(),
                                               files.certificate.c_str()),
            1);
  EXPECT_EQ(SSL_CTX_use_PrivateKey_file(context.get(), files.key.c_str(),
                                        SSL_FILETYPE_PEM),
            1);
  return context;
}

// Does a handshake. Returns "ok" if a byte then arrives in both directions, and
// otherwise the verification error of the first side that refused.
std::string Shake(const Context& server, const Context& client) {
  const Tls a(SSL_new(server.get())), b(SSL_new(client.get()));
  BIO *a_end = nullptr, *b_end = nullptr;
  EXPECT_EQ(BIO_new_bio_pair(&a_end, 0, &b_end, 0), 1);
  SSL_set_bio(a.get(), a_end, a_end);
  SSL_set_bio(b.get(), b_end, b_end);
  SSL_set_accept_state(a.get());
  SSL_set_connect_state(b.get());
  bool a_got = false, b_got = false;
  constexpr int kRounds = 20;  // a handshake takes a few
  for (int round = 0; round < kRounds && !(a_got && b_got); ++round) {
    for (SSL* side : {a.get(), b.get()}) {
      const int done = SSL_do_handshake(side);
      if (done == 1) {
        char byte = '!';
        SSL_write(side, &byte, 1);
        bool& got = side == a.get() ? a_got : b_got;
        got = SSL_read(side, &byte, 1) == 1 || got;
      } else if (SSL_get_error(side, done) == SSL_ERROR_SSL) {
        const std::string reason = OpenSslReason();
        const long verified = SSL_get_verify_result(side);
        return verified == X509_V_OK ? reason
                                     : X509_verify_cert_error_string(verified);
      }
    }
  }
  return a_got && b_got ? "ok" : "stuck";
}

class CertificatesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = FreshPath();
    options_.now = absl::Now();
  }

  // Makes a folder with an authority and the certificate of a node.
  CertificateFiles MakeAll(const std::string& name,
                           const CertificateOptions& options) {
    const std::string folder = JoinPath(root_, name);
    EXPECT_TRUE(MakePrivateFolder(folder).ok());
    const absl::StatusOr<Authority> authority = Authority::Make(options);
    EXPECT_TRUE(authority.ok()) << authority.status();
    EXPECT_TRUE(authority->WriteCertificate(folder).ok());
    EXPECT_TRUE(authority->WriteKey(folder).ok());
    EXPECT_TRUE(authority->WriteNode(folder, {"localhost"}, options).ok());
    return CertificatesIn(folder);
  }
  mode_t Mode(const std::string& path) {
    struct stat info = {};
    EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
    return info.st_mode & 07777;
  }

  PosixFileSystem files_;
  std::string root_;
  CertificateOptions options_;
};

TEST_F(CertificatesTest, NodesOfOneAuthorityConnect) {
  const CertificateFiles first = MakeAll("a", options_);
  const absl::StatusOr<Authority> authority = Authority::Load(root_ + "/a");
  ASSERT_TRUE(authority.ok()) << authority.status();
  ASSERT_TRUE(MakePrivateFolder(root_ + "/b").ok());
  ASSERT_TRUE(authority->WriteCertificate(root_ + "/b").ok());
  ASSERT_TRUE(authority->WriteNode(root_ + "/b", {"b"}, options_).ok());
  const CertificateFiles second = CertificatesIn(root_ + "/b");

  EXPECT_TRUE(CheckCertificates(second, options_.now).ok());
  EXPECT_EQ(*NameOf(second.certificate), "b");
  EXPECT_EQ(Shake(MakeContext(first, /*shows=*/true),
                  MakeContext(second, /*shows=*/true)),
            "ok");
}

TEST_F(CertificatesTest, AnOlderProtocolConnectsToo) {
  const CertificateFiles files = MakeAll("a", options_);
  const Context server = MakeContext(files, /*shows=*/true);
  SSL_CTX_set_max_proto_version(server.get(), TLS1_2_VERSION);
  EXPECT_EQ(Shake(server, MakeContext(files, /*shows=*/true)), "ok");
}

TEST_F(CertificatesTest, AnotherAuthorityIsRefused) {
  const CertificateFiles ours = MakeAll("a", options_);
  const CertificateFiles others = MakeAll("b", options_);
  EXPECT_EQ(Shake(MakeContext(ours, /*shows=*/true),
                  MakeContext(others, /*shows=*/true)),
            "self-signed certificate in certificate chain");
  // A client with the right authority, and a certificate signed by another.
  CertificateFiles mixed = others;
  mixed.authority = ours.authority;
  EXPECT_EQ(Shake(MakeContext(ours, /*shows=*/true),
                  MakeContext(mixed, /*shows=*/true)),
            "unable to get local issuer certificate");
}

TEST_F(CertificatesTest, NoCertificateIsRefused) {
  const CertificateFiles files = MakeAll("a", options_);
  EXPECT_EQ(Shake(MakeContext(files, /*shows=*/true),
                  MakeContext(files, /*shows=*/false)),
            "peer did not return a certificate");
}

TEST_F(CertificatesTest, AnExpiredCertificateIsRefused) {
  const CertificateFiles ours = MakeAll("a", options_);
  const absl::StatusOr<Authority> authority = Authority::Load(root_ + "/a");
  ASSERT_TRUE(authority.ok()) << authority.status();
  ASSERT_TRUE(MakePrivateFolder(root_ + "/b").ok());
  ASSERT_TRUE(authority->WriteCertificate(root_ + "/b").ok());
  CertificateOptions past = options_;
  past.now -= past.validity + absl::Minutes(1);
  ASSERT_TRUE(authority->WriteNode(root_ + "/b", {"b"}, past).ok());
  EXPECT_EQ(Shake(MakeContext(ours, /*shows=*/true),
                  MakeContext(CertificatesIn(root_ + "/b"), /*shows=*/true)),
            "certificate has expired");
}

TEST_F(CertificatesTest, ANodeIsNoAuthority) {
  const CertificateFiles files = MakeAll("a", options_);
  // The node uses its own certificate as an authority's.
  const std::string forged = root_ + "/forged";
  ASSERT_TRUE(MakePrivateFolder(forged).ok());
  ASSERT_EQ(rename(files.key.c_str(), AuthorityKeyIn(forged).c_str()), 0);
  ASSERT_EQ(rename(files.certificate.c_str(),
                   CertificatesIn(forged).authority.c_str()),
            0);
  const absl::StatusOr<Authority> authority = Authority::Load(forged);
  ASSERT_TRUE(authority.ok()) << authority.status();
  ASSERT_TRUE(authority->WriteNode(forged, {"evil"}, options_).ok());
  CertificateFiles evil = CertificatesIn(forged);
  evil.authority = files.authority;
  EXPECT_FALSE(CheckCertificates(evil, options_.now).ok());
}

TEST_F(CertificatesTest, KeysAreForTheirOwnerAlone) {
  const CertificateFiles files = MakeAll("above/a", options_);
  EXPECT_EQ(Mode(root_ + "/above/a"), 0700u);
  EXPECT_EQ(Mode(files.key), 0600u);
  EXPECT_EQ(Mode(AuthorityKeyIn(root_ + "/above/a")), 0600u);
}

TEST_F(CertificatesTest, NothingIsOverwritten) {
  const CertificateFiles files = MakeAll("a", options_);
  const std::string before = *ReadWholeFile(files_, files.key, 10000);
  const absl::StatusOr<Authority> other = Authority::Make(options_);
  ASSERT_TRUE(other.ok());
  for (const absl::Status& status :
       {other->WriteCertificate(root_ + "/a"), other->WriteKey(root_ + "/a"),
        other->WriteNode(root_ + "/a", {"a"}, options_)}) {
    EXPECT_TRUE(absl::StrContains(status.message(), "File exists")) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), root_ + "/a/")) << status;
  }
  EXPECT_EQ(*ReadWholeFile(files_, files.key, 10000), before);
}

TEST_F(CertificatesTest, CertificatesThatNoDiskHolds) {
  const absl::StatusOr<Authority> authority = Authority::Make(options_);
  ASSERT_TRUE(authority.ok());
  const absl::StatusOr<NodePem> node =
      authority->SignNode({"localhost"}, options_);
  ASSERT_TRUE(node.ok()) << node.status();
  std::vector<std::string> paths;
  for (const std::string& pem :
       {*authority->CertificatePem(), node->certificate, node->key}) {
    const absl::StatusOr<int> fd = OpenInMemory("pem", pem);
    ASSERT_TRUE(fd.ok()) << fd.status();
    paths.push_back(absl::StrCat("/proc/self/fd/", *fd));
  }
  const CertificateFiles files = {paths[0], paths[1], paths[2]};
  EXPECT_EQ(CheckCertificates(files, options_.now), absl::OkStatus());
  const Context context = MakeContext(files, /*shows=*/true);
  EXPECT_EQ(Shake(context, MakeContext(files, /*shows=*/true)), "ok");
}

TEST_F(CertificatesTest, BothFilesOfANodeOrNone) {
  const absl::StatusOr<Authority> authority = Authority::Make(options_);
  ASSERT_TRUE(authority.ok());
  ASSERT_TRUE(MakePrivateFolder(root_).ok());
  const CertificateFiles files = CertificatesIn(root_);
  ASSERT_TRUE(WriteWholeFile(files_, files.certificate, "in the way").ok());
  EXPECT_FALSE(authority->WriteNode(root_, {"a"}, options_).ok());
  EXPECT_FALSE(files_.Exists(files.key));
}

TEST_F(CertificatesTest, RefusesWhatIsNoHost) {
  const absl::StatusOr<Authority> authority = Authority::Make(options_);
  ASSERT_TRUE(authority.ok());
  for (const std::string host : {"", "a b", "a,DNS:b", "../a", "a\nb"}) {
    EXPECT_EQ(authority->WriteNode(root_, {"fine", host}, options_).message(),
              absl::StrCat("\"", host,
                           "\" is no name or address of a host; write one such "
                           "as node1.example.org or 10.0.0.7"));
  }
  EXPECT_TRUE(
      absl::IsInvalidArgument(authority->WriteNode(root_, {}, options_)));
}

TEST_F(CertificatesTest, AFolderThatCannotBe) {
  ASSERT_TRUE(MakePrivateFolder(root_).ok());
  ASSERT_TRUE(WriteWholeFile(files_, root_ + "/file", "").ok());
  EXPECT_TRUE(absl::StrContains(MakePrivateFolder(root_ + "/file").message(),
                                root_ + "/file: File exists"));
  EXPECT_TRUE(absl::StrContains(MakePrivateFolder(root_ + "/file/a").message(),
                                root_ + "/file/a: Not a directory"));
  EXPECT_TRUE(MakePrivateFolder(root_ + "/").ok());
}

// Checks the certificates with another implementation.
TEST_F(CertificatesTest, TheOpensslCommandAgrees) {
  if (system("openssl version >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "no openssl command here";
  }
  const CertificateFiles files = MakeAll("a", options_);
  ASSERT_TRUE(MakePrivateFolder(root_ + "/b").ok());
  const absl::StatusOr<Authority> authority = Authority::Load(root_ + "/a");
  ASSERT_TRUE(authority.ok());
  ASSERT_TRUE(
      authority->WriteNode(root_ + "/b", {"n1", "10.0.0.7", "::1"}, options_)
          .ok());
  const std::string node = CertificatesIn(root_ + "/b").certificate;
  const std::string text = root_ + "/text";
  for (const std::string& command :
       {absl::StrCat("openssl verify -x509_strict -purpose sslserver -CAfile ",
                     files.authority, " ", node, " >", text),
        absl::StrCat("openssl verify -x509_strict -purpose sslclient -CAfile ",
                     files.authority, " ", node, " >", text),
        absl::StrCat("openssl x509 -noout -text -in ", node, " >", text)}) {
    ASSERT_EQ(system(command.c_str()), 0)
        << command << ReadWholeFile(files_, text, 10000).value_or("");
  }
  const std::string shown = *ReadWholeFile(files_, text, 10000);
  EXPECT_TRUE(absl::StrContains(
      shown, "DNS:n1, IP Address:10.0.0.7, IP Address:0:0:0:0:0:0:0:1"))
      << shown;
  EXPECT_TRUE(absl::StrContains(shown, "ASN1 OID: prime256v1")) << shown;
}

}  // namespace
}  // namespace troupe::base::tls
