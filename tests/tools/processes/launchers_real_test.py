"""The real torchrun, mpirun and srun start a job of two processes, which leaves
the checkpoint of one process with two ranks; and a program with a main of its
own, which prints the same losses. Each where it is installed."""

import contextlib
import os
import pwd
import re
import socket
import sys

sys.path.insert(0, os.path.join("tests", "tools", "processes"))

# pylint: disable=wrong-import-position
import several_processes
from several_processes import (
    DEADLINE_S, JOB, STEPS, TRAINER, TrainingTest, mpirun_words, options)

PROGRAM = os.path.abspath("examples/any_launcher/any_launcher")
LOSS = re.compile(r"^(?:step \d+: |test )loss .*$", re.MULTILINE)

# Two nodes on this machine, each with a slurmd of its own. auth/none lets
# every local user pose as any other: nothing else listens than 127.0.0.1.
SLURM = """
ClusterName=t
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
StateSaveLocation={folder}
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/ctld.pid
SlurmdPidFile={folder}/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
ReturnToService=2
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
MpiParams=ports={ports[3]}-{ports[4]}
KillWait=2
NodeName=127.0.0.1 NodeHostname=localhost NodeAddr=127.0.0.1 Port={ports[1]}
NodeName=127.0.0.2 NodeHostname=localhost NodeAddr=127.0.0.1 Port={ports[2]}
PartitionName=p Nodes=127.0.0.[1-2] Default=YES MaxTime=INFINITE
"""


def free_ports(count):
    """Ports that nobody has, ascending."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return sorted(each.getsockname()[1] for each in sockets)


class LaunchersRealTest(TrainingTest):

    def starts_two_processes(self, launcher, *words, more=()):
        """These words start `trainer train` twice."""
        path = self.train(
            [*words, TRAINER, "train", self.certificates()], more,
            says="launched by %s: process 1 of 2" % launcher)
        self.assert_same_bits(
            path, self.train([TRAINER, "train"], ["--ranks=2"]))

    def starts_a_program(self, launcher, *words):
        """These words start a program with a main of its own twice."""
        certificates = "TROUPE_CERTS=" + self.certificates().split("=", 1)[1]
        printed = self.output([*words, "env", certificates, PROGRAM])
        self.assertIn("launched by %s: process 1 of 2" % launcher, printed)
        losses = LOSS.findall(printed)
        self.assertEqual(len(losses), 5, printed)
        self.assertEqual(
            losses, LOSS.findall(self.output([PROGRAM, "--ranks=2"])))

    def test_torchrun(self):
        peer = os.environ.get("TROUPE_PEER")
        torchrun = self.find(
            "torchrun", also_in=peer and os.path.join(peer, "bin"))
        words = [torchrun, "--nproc-per-node=2", "--no-python"]
        for starts in (self.starts_two_processes, self.starts_a_program):
            port = "--master-port=%d" % free_ports(1)[0]
            starts("torchrun", *words, port)

    def mpirun_of_two(self):
        return [*(mpirun_words() or self.skip("no mpirun here")), "-n", "2"]

    def test_mpirun(self):
        for transport in ("auto", "mpi"):
            with self.subTest(transport):
                self.starts_two_processes(
                    "Open MPI", *self.mpirun_of_two(),
                    more=options(comm__transport=transport))
        self.starts_a_program("Open MPI", *self.mpirun_of_two())

    def test_mpirun_has_no_terminal(self):
        # It gives each process one, and hands on what is drawn there.
        printed = self.output(
            [*self.mpirun_of_two(), TRAINER, "train", self.certificates(), *JOB,
             *options(log__progress="auto")])
        self.assertIn("step %d/%d" % (STEPS, STEPS), printed)
        self.assertNotIn("\x1b", printed)

    def start_daemon(self, *command):
        # They leave with this process, however it ends.
        return self.start(["setpriv", "--pdeathsig", "KILL", *command])

    def idle_nodes(self, daemons):
        for daemon in daemons:
            self.assertFalse(daemon.wait(0), daemon.out() + daemon.err())
        asking = self.start([self.find("sinfo"), "-h", "-o", "%D %t"])
        asking.end(DEADLINE_S)
        return asking.out().strip() == "2 idle"

    def start_slurm(self):
        ctld, slurmd = self.find("slurmctld"), self.find("slurmd")
        self.find("srun")
        ports = free_ports(5)
        conf = os.path.join(self.root, "slurm.conf")
        with open(conf, "w", encoding="ascii") as file:
            file.write(SLURM.format(
                folder=self.root, user=pwd.getpwuid(os.geteuid()).pw_name,
                ports=ports))
        os.environ["SLURM_CONF"] = conf
        self.addCleanup(os.environ.pop, "SLURM_CONF")
        daemons = [self.start_daemon(ctld, "-Dc")]
        for node in ("127.0.0.1", "127.0.0.2"):
            daemons.append(self.start_daemon(slurmd, "-Dc", "-N", node))
        daemons[0].wait_until(lambda: self.idle_nodes(daemons), DEADLINE_S)

    def test_slurm(self):
        self.start_slurm()
        srun = [self.find("srun"), "-N2", "-n2"]
        with self.subTest("a port of the launcher's"):
            self.starts_two_processes("Slurm", *srun, "--resv-ports=2")
        with self.subTest("a port made from the job's number"):
            self.starts_two_processes("Slurm", *srun)
        with self.subTest("a program with a main of its own"):
            self.starts_a_program("Slurm", *srun)


if __name__ == "__main__":
    several_processes.main()
