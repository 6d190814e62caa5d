"""Ranks leave the same checkpoint, bit for bit, wherever they live: as threads,
as processes, as hosts, whatever carries what they say."""

import os
import sys
import tempfile

sys.path.insert(0, os.path.join("tests", "tools", "processes"))

# pylint: disable=wrong-import-position
import several_processes
from several_processes import TRAINER, TrainingTest, options


def launch(processes, ranks_per_process=None):
    words = [TRAINER, "launch", "--nproc-per-node=%d" % processes]
    if ranks_per_process:
        words.append("--ranks-per-process=%d" % ranks_per_process)
    return words + ["--", "train"]


class SameBitsTest(TrainingTest):

    def one_process(self, *more):
        return self.train([TRAINER, "train"], more)

    def two_ranks(self):
        return self.one_process("--ranks=2")

    def test_two_processes_by_each_transport(self):
        want = self.two_ranks()
        for more in (options(comm__transport="shm"),
                     options(comm__transport="tcp"),
                     options(comm__transport="tcp", comm__encrypt="true")):
            with self.subTest(more):
                self.assert_same_bits(self.train(launch(2), more), want)

    def test_two_processes_of_mpirun(self):
        self.assert_same_bits(
            self.train(self.mpirun(2),
                       says="launched by Open MPI: process 1 of 2"),
            self.two_ranks())

    def test_processes_of_mpirun_by_mpi(self):
        mpi = options(comm__transport="mpi")
        says = "process 0 exchanges tensors with the others by mpi (%d link"
        self.assert_same_bits(
            self.train(self.mpirun(2), mpi, says % 1), self.two_ranks())
        self.assert_same_bits(
            self.train(self.mpirun(3), mpi, says % 2),
            self.one_process("--ranks=3"))

    def test_two_hosts(self):
        self.assert_same_bits(self.train_on_hosts(2), self.two_ranks())

    def test_two_hosts_encrypted(self):
        self.assert_same_bits(
            self.train_on_hosts(2, options(comm__encrypt="true")),
            self.two_ranks())

    def test_four_ranks_in_four_two_and_one_processes(self):
        want = self.one_process("--ranks=4")
        self.assert_same_bits(self.train(launch(4)), want)
        self.assert_same_bits(
            self.train(launch(2, ranks_per_process=2)), want)
        self.assert_same_bits(
            self.train(launch(1, ranks_per_process=4)), want)

    def test_three_ranks_in_three_two_and_one_processes(self):
        want = self.one_process("--ranks=3")
        self.assert_same_bits(self.train(launch(3)), want)
        self.assert_same_bits(
            self.train(launch(2), ["--ranks=3"],
                       says="process 1 of 2"), want)

    def test_three_hosts(self):
        self.assert_same_bits(self.train_on_hosts(3, options(mesh__dp=3)),
                              self.one_process("--ranks=3"))

    def test_a_pipeline_in_one_and_two_processes(self):
        stages = options(mesh__dp=1, mesh__pp=2, mesh__cuts=7,
                         train__micro_batch_size=12)
        want = self.one_process(*stages)
        starts = {"shm": launch(2), "tcp": launch(2)}
        if several_processes.mpirun_words():
            starts["mpi"] = self.mpirun(2)
        for transport, start in starts.items():
            with self.subTest(transport):
                self.assert_same_bits(
                    self.train(start, [
                        *stages, *options(comm__transport=transport)]), want)

    # ZeRO: each replica has a slice of the optimizer's states.
    def test_owners_of_states_in_one_and_two_processes(self):
        owners = options(zero__stage=1)
        want = self.two_ranks()
        self.assert_same_bits(self.one_process("--ranks=2", *owners), want)
        for transport in "shm", "tcp":
            with self.subTest(transport):
                self.assert_same_bits(
                    self.train(launch(2), [
                        *owners, *options(comm__transport=transport)]), want)
        self.assert_same_bits(self.train(launch(3), owners),
                              self.one_process("--ranks=3"))

    # The same of gradients, which differ from whole ones by rounding where each
    # of several micro-batches is reduced.
    def test_owners_of_gradients_in_one_and_two_processes(self):
        owners = options(zero__stage=2)
        self.assert_same_bits(self.one_process("--ranks=2", *owners),
                              self.two_ranks())
        micro = options(train__micro_batch_size=4)
        for accumulate in "sharded", "local":
            several = [*owners, *micro,
                       *options(zero__accumulate=accumulate)]
            want = self.one_process(
                "--ranks=2", *(several if accumulate == "sharded" else micro))
            for transport in "shm", "tcp":
                with self.subTest(accumulate + " " + transport):
                    self.assert_same_bits(
                        self.train(launch(2), [
                            *several, *options(comm__transport=transport)]),
                        want)

    # The same of parameters, which are gathered before each use. A run that is
    # stopped goes on with whole ones.
    def test_owners_of_parameters_in_one_and_two_processes(self):
        owners = options(zero__stage=3, zero__ahead_bytes="8KiB",
                         comm__bucket_bytes="16KiB",
                         zero__accumulate="local")
        micro = options(train__micro_batch_size=4)
        want = self.two_ranks()
        want_micro = self.one_process("--ranks=2", *micro)
        for transport in "shm", "tcp":
            with self.subTest(transport):
                by = options(comm__transport=transport)
                self.assert_same_bits(
                    self.train(launch(2), [*owners, *by]), want)
                self.assert_same_bits(
                    self.train(launch(2), [*owners, *micro, *by]), want_micro)
                path = tempfile.mkdtemp(dir=self.root)
                self.train(launch(2), [*owners, *by,
                                       *options(train__steps=2)], path=path)
                self.assert_same_bits(
                    self.train(launch(2), [*by, "--resume"], path=path), want)
        self.assert_same_bits(
            self.train(launch(3), [*owners, *options(zero__keep="true")]),
            self.one_process("--ranks=3"))

    # Tensor parallelism: each rank has pieces of a ViT's blocks.
    def test_pieces_of_layers_in_one_and_two_processes(self):
        pieces = options(model__kind="vit_tiny", model__depth=2,
                         model__heads=2, model__width=16,
                         model__patch_size=7, mesh__dp=1, mesh__tp=2,
                         optimizer__clip_grad_norm=0.5)
        want = self.one_process(*pieces)
        for transport in "shm", "tcp":
            with self.subTest(transport):
                self.assert_same_bits(
                    self.train(launch(2), [
                        *pieces, *options(comm__transport=transport)]), want)

    def test_a_pipeline_on_two_hosts(self):
        stages = options(mesh__dp=1, mesh__pp=2, mesh__cuts=7,
                         train__micro_batch_size=12)
        self.assert_same_bits(self.train_on_hosts(2, stages),
                              self.one_process(*stages))

    def test_a_pipeline_with_replicas_in_two_processes(self):
        stages = options(mesh__dp=2, mesh__pp=2, mesh__cuts=7,
                         train__micro_batch_size=12)
        self.assert_same_bits(
            self.train(launch(2, ranks_per_process=2), stages),
            self.one_process(*stages))


if __name__ == "__main__":
    several_processes.main()
