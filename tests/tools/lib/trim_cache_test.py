"""tools/lib/trim_cache.py removes what was used longest ago, and no more than it must."""

import os
import subprocess
import sys
import tempfile
import unittest

KILOBYTE = 1000
GIGABYTE = 10**9


class TrimCacheTest(unittest.TestCase):

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def file(self, name, read, written, size=KILOBYTE, begins=b""):
        path = os.path.join(self.folder, "cas", name[:2], name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as out:
            out.write(begins.ljust(size, b"x"))
        os.chmod(path, 0o444)  # as Bazel leaves its entries
        os.utime(path, (read, written))

    def left(self):
        return {name for _, _, names in os.walk(self.folder) for name in names}

    def trim(self, kilobytes):
        return subprocess.run(
            [
                sys.executable,
                "tools/lib/trim_cache.py",
                self.folder,
                f"--gigabytes={kilobytes * KILOBYTE / GIGABYTE}",
            ],
            capture_output=True,
            text=True,
            check=False,
        )

    def test_below_the_limit_nothing_goes(self):
        for index in range(4):
            self.file(f"entry{index}", read=index, written=index)
        result = self.trim(kilobytes=4)
        self.assertEqual((result.returncode, result.stdout), (0, ""), result.stderr)
        self.assertEqual(len(self.left()), 4)

    def test_what_was_used_longest_ago_goes_first(self):
        self.file("new", read=0, written=90)
        self.file("read_lately", read=80, written=10)
        for index in range(6):
            self.file(f"old{index}", read=20 + index, written=20)
        result = self.trim(kilobytes=4)
        self.assertEqual(result.returncode, 0, result.stderr)
        # Three quarters of the limit.
        self.assertEqual(self.left(), {"new", "read_lately", "old5"})
        self.assertIn("are removed", result.stdout)

    def test_sizes_count_and_not_files(self):
        self.file("large", read=1, written=1, size=50 * KILOBYTE)
        for index in range(10):
            self.file(f"small{index}", read=2, written=2)
        self.trim(kilobytes=20)
        self.assertEqual(self.left(), {f"small{index}" for index in range(10)})

    def test_a_precompiled_header_stays_a_week_longer(self):
        day = 24 * 3600
        self.file("old_by_gcc", read=0, written=0, begins=b"gpch")
        self.file("by_gcc", read=8 * day, written=0, begins=b"gpch")
        self.file("by_clang", read=8 * day, written=0, begins=b"CPCH")
        for index in range(3):
            self.file(f"object{index}", read=10 * day + index, written=0)
        self.trim(kilobytes=4)
        self.assertEqual(self.left(), {"by_gcc", "by_clang", "object2"})

    def test_an_action_goes_with_its_outputs(self):
        gone, stays = "a" * 64, "b" * 64
        self.file(gone, read=1, written=1, size=3 * KILOBYTE)
        self.file(stays, read=2, written=2, size=3 * KILOBYTE)
        for action, output in (("makes_gone", gone), ("makes_stays", stays)):
            path = os.path.join(self.folder, "ac", "01", action)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as result:
                result.write(b"\x0a\x05a.out\x12\x44\x0a\x40" + output.encode())
        self.trim(kilobytes=4)
        self.assertEqual(self.left(), {stays, "makes_stays"})

    def test_a_cache_that_was_never_made_is_no_fault(self):
        self.folder = os.path.join(self.folder, "absent")
        result = self.trim(kilobytes=1)
        self.assertEqual((result.returncode, result.stdout), (0, ""), result.stderr)

    def test_a_size_of_zero_is_refused_by_name(self):
        result = self.trim(kilobytes=0)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("--gigabytes=0: expected a size above zero", result.stderr)


if __name__ == "__main__":
    unittest.main()
