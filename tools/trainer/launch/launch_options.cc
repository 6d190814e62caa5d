#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/host_port.h"
#include "tools/trainer/launch/launch_command.h"
#include "tools/trainer/terminal/arguments.h"
#include "tools/trainer/terminal/options_reader.h"

namespace troupe::tools {
namespace {

constexpr int kCountMax = 4096;

constexpr char kHelp[] =
    R"(trainer launch --nproc-per-node=K [options] -- train [options of train]
trainer launch --nproc-per-node=K --program=PATH [options] [-- arguments]

Starts K processes on this node, which train one job together, and ends when the
last of them has. Each is this program with what stands after "--", or PATH with
what stands there.

Options:
  --nproc-per-node=K       So many processes on this node.
  --program=PATH           Starts this program. It finds its place in the job by
                           actors::ClusterFromEnvironment(), or by torchrun's
                           variables, which are set too: RANK, WORLD_SIZE,
                           LOCAL_RANK, MASTER_ADDR, MASTER_PORT and others. A
                           name without a slash is looked up in PATH.
  --ranks-per-process=R    So many ranks in each.
  --nnodes=N               The job has N nodes; start the same on each of them.
  --node-rank=I            Which of them this is, 0 to N-1.
  --master=HOST:PORT       Where process 0 listens: a host of node 0 that the
                           others reach, and a free port of it.
  --certs=DIR              authority.pem, node.pem and node.key of this node;
                           `trainer certs` makes them. On one node they are made
                           for the job, and no disk holds them.
  --output-dir=DIR         What process I writes goes to DIR/process-I.log, not
                           to the terminal.
  --bind=cores|none        Whether each process gets its share of the cores, or
                           may run on all. Default: cores.
  --help                   This text.

Two processes on this machine:

  trainer launch --nproc-per-node=2 -- \
      train --config=examples/glyphs/glyphs.toml

Two processes of a program of one's own, with its arguments:

  trainer launch --nproc-per-node=2 --program=./mine -- --steps=100

Two machines, n1 and n2, with the certificates of `trainer certs` in certs/:

  n1$ trainer launch --nnodes=2 --node-rank=0 --master=n1:29400 \
          --nproc-per-node=1 --certs=certs -- train --config=FILE
  n2$ trainer launch --nnodes=2 --node-rank=1 --master=n1:29400 \
          --nproc-per-node=1 --certs=certs -- train --config=FILE

Under Slurm (srun, one `trainer launch` on each node) and in an indexed job of
Kubernetes, nodes and address come from there; `trainer train` alone understands
them too, and torchrun and mpirun (docs/launching.md).

Lines of process I begin with "[I]", those of process 0 are as they are. Ctrl-C
stops all processes as it stops one. When one fails, the others have 5 s to end
by themselves; then they get SIGTERM, and SIGKILL 5 s later. What failed first
is said last, and gives the exit code: its own, or 128 and the number of the
signal that killed it. No process outlives this one, however it ends.
)";

class LaunchParser {
 public:
  absl::StatusOr<LaunchOptions> Parse(
      const std::vector<std::string>& arguments) {
    Arguments left(arguments);
    OptionsReader reader("launch");
    reader.EndAtTwoDashes(
        ", and options of train come after \"-- train\", those of a program "
        "after \"--\"");
    reader.Number("--nproc-per-node=2", 1, kCountMax,
                  &options_.processes_per_node);
    reader.Path("--program=./mine", &options_.program);
    reader.Number("--ranks-per-process=2", 1, kCountMax,
                  &options_.ranks_per_process);
    reader.Number("--nnodes=2", 1, kCountMax, &options_.nodes);
    reader.Number("--node-rank=0", 0, kCountMax, &options_.node);
    reader.Text("--master=n1:29400", &options_.master);
    reader.Path("--output-dir=logs", &options_.output_dir);
    reader.Path("--certs=certs", &options_.certs);
    reader.Text("--bind=cores", &bind_);
    TROUPE_ASSIGN_OR_RETURN(options_.help, reader.Read(left));
    if (options_.help) return options_;
    options_.command = left.Rest();
    options_.words.assign(arguments.begin(),
                          arguments.end() - options_.command.size());
    TROUPE_RETURN_IF_ERROR(Check());
    return options_;
  }

 private:
  absl::Status Check() {
    if (options_.processes_per_node == 0) {
      return absl::InvalidArgumentError(
          "how many processes is not said; write --nproc-per-node=2");
    }
    if (options_.program.empty()) TROUPE_RETURN_IF_ERROR(CheckTrain());
    if (bind_ != "cores" && bind_ != "none") {
      return absl::InvalidArgumentError(
          absl::StrCat("--bind=", bind_, ": must be cores or none"));
    }
    options_.bind = bind_ == "cores";
    if (!options_.master.empty()) {
      const absl::StatusOr<base::HostPort> master =
          base::ParseHostPort(options_.master);
      if (!master.ok()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "--master=", options_.master, ": ", master.status().message()));
      }
    }
    return CheckNodes();
  }

  // Checks the command of `trainer train`.
  absl::Status CheckTrain() const {
    if (options_.command.empty()) {
      return absl::InvalidArgumentError(
          "what to start is not said; write -- train --config=FILE last");
    }
    if (options_.command[0] != "train") {
      return absl::InvalidArgumentError(
          absl::StrCat("-- ", options_.command[0],
                       ": must be train, and its options; start another "
                       "program by --program=PATH"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckNodes() const {
    if (options_.nodes > 0 && options_.node >= options_.nodes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--node-rank=", options_.node, " must be below --nnodes=",
          options_.nodes, ", since numbers begin with 0"));
    }
    return absl::OkStatus();
  }

  LaunchOptions options_;
  std::string bind_ = "cores";
};

}  // namespace

std::string LaunchHelp() { return kHelp; }

absl::StatusOr<LaunchOptions> ParseLaunch(
    const std::vector<std::string>& arguments) {
  return LaunchParser().Parse(arguments);
}

}  // namespace troupe::tools
