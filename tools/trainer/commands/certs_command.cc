#include "tools/trainer/commands/certs_command.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/check.h"
#include "base/files/file_system.h"
#include "base/tls/certificates.h"
#include "tools/trainer/terminal/arguments.h"
#include "tools/trainer/terminal/options_reader.h"

namespace troupe::tools {
namespace {

using base::tls::Authority;
using base::tls::CertificateFiles;
using base::tls::CertificateOptions;
using base::tls::CertificatesIn;

constexpr char kNodeForAll[] = "node";
constexpr int kDaysMax = 3650;

constexpr char kHelp[] = R"(trainer certs --dir=DIR [--hosts=A,B,...] [--days=N]

Makes the certificates by which the nodes of a job know each other: an authority
in DIR, and below it a folder for each node, to be copied there. A node talks
only to those that show a certificate of the same authority. `trainer launch`
without other nodes needs none: it makes some of its own that no disk sees.

Options:
  --dir=DIR        The folder. Its authority is made on the first call, and used
                   for more hosts on later ones.
  --hosts=A,B,...  Names or addresses; each gets a folder of its own. Without:
                   one folder, "node", for all nodes.
  --days=N         How long they are valid; default 365. No node is valid longer
                   than its authority.

For example, for two hosts:

  trainer certs --dir=certs --hosts=n1,n2
  scp -pr certs/n1 n1:certs
  scp -pr certs/n2 n2:certs

and there `trainer launch --certs=certs ...`, or `trainer train --certs=certs`.
DIR/authority.key stays where it is: whoever has it can let anybody in.
)";

absl::StatusOr<Authority> MakeAuthority(const std::string& dir,
                                        const CertificateOptions& options) {
  TROUPE_RETURN_IF_ERROR(base::tls::MakePrivateFolder(dir));
  TROUPE_ASSIGN_OR_RETURN(Authority authority, Authority::Make(options));
  TROUPE_RETURN_IF_ERROR(authority.WriteKey(dir));
  TROUPE_RETURN_IF_ERROR(authority.WriteCertificate(dir));
  return authority;
}

// All three files or none.
absl::Status MakeNode(const Authority& authority, const std::string& folder,
                      const std::string& host,
                      const CertificateOptions& options) {
  TROUPE_RETURN_IF_ERROR(base::tls::MakePrivateFolder(folder));
  TROUPE_RETURN_IF_ERROR(authority.WriteNode(folder, {host}, options));
  return authority.WriteCertificate(folder);
}

int RunCerts(const std::vector<std::string>& arguments,
             const CommandContext& context) {
  const absl::StatusOr<CertsOptions> options = ParseCerts(arguments);
  if (!options.ok()) return Fail(context, options.status(), kExitUsage);
  if (options->help) return Print(context, CertsHelp());
  const absl::StatusOr<std::string> text = MakeCerts(*options, absl::Now());
  return text.ok() ? Print(context, *text) : Fail(context, text.status());
}

}  // namespace

std::string CertsHelp() { return kHelp; }

absl::StatusOr<CertsOptions> ParseCerts(
    const std::vector<std::string>& arguments) {
  CertsOptions options;
  OptionsReader reader("certs");
  reader.Path("--dir=certs", &options.dir);
  reader.List("--hosts=n1,n2", &options.hosts);
  reader.Number("--days=365", /*min=*/1, kDaysMax, &options.days);
  Arguments left(arguments);
  TROUPE_ASSIGN_OR_RETURN(options.help, reader.Read(left));
  if (options.help || !options.dir.empty()) return options;
  return absl::InvalidArgumentError(
      "no folder for the certificates is given; write --dir=certs");
}

absl::StatusOr<std::string> MakeCerts(const CertsOptions& options,
                                      absl::Time now) {
  CertificateOptions validity;
  validity.now = now;
  validity.validity = options.days * absl::Hours(24);
  base::PosixFileSystem files;
  std::vector<std::string> hosts = options.hosts;
  if (hosts.empty()) hosts = {kNodeForAll};
  for (const std::string& host : hosts) {
    TROUPE_RETURN_IF_ERROR(base::tls::CheckHost(host));
    const std::string folder = base::JoinPath(options.dir, host);
    if (!files.Exists(folder)) continue;
    return absl::AlreadyExistsError(absl::StrCat(
        folder,
        " is there already, and nothing is overwritten; remove it, or "
        "use another --dir"));
  }
  const bool is_new = !files.Exists(CertificatesIn(options.dir).authority);
  TROUPE_ASSIGN_OR_RETURN(const Authority authority,
                          is_new ? MakeAuthority(options.dir, validity)
                                 : Authority::Load(options.dir));
  std::string text =
      absl::StrCat(is_new ? "made" : "used", " the authority in ", options.dir,
                   "; its authority.key stays there\n");
  for (const std::string& host : hosts) {
    const std::string folder = base::JoinPath(options.dir, host);
    TROUPE_RETURN_IF_ERROR(MakeNode(authority, folder, host, validity));
    absl::StrAppend(&text, "made ", folder, ": copy it to ",
                    options.hosts.empty() ? "every node" : host,
                    ", and start there with --certs=DIR\n");
  }
  return text;
}

Command CertsCommand() {
  return {"certs", "--dir=DIR [--hosts=A,B]", "certificates for several nodes",
          CertsHelp, RunCerts};
}

}  // namespace troupe::tools
