"""Finds what the machine has: GPUs, libraries, PyTorch, a sanitizer.

    facts = Facts(bundle)
    facts.gpus                   # lines of Troupe's own list; [] if none
    facts.why_no_gpu             # "0 devices: ..." if none
    facts.torch                  # version "2.11.0" of the peer, or None
    facts.sanitizer              # path of compute-sanitizer, or None
"""

import os
import platform
import re
import shutil

from gpu_check.bundle import complaint, run

QUERY = ["nvidia-smi", "--format=csv,noheader",
         "--query-gpu=name,driver_version,memory.total,compute_cap"]


def first_line(text):
    return (text.strip().splitlines() or [""])[0]


def nvidia_smi():
    """Returns the lines of nvidia-smi, or why there are none."""
    if shutil.which("nvidia-smi") is None:
        return ["no nvidia-smi here"]
    outcome = run(QUERY, limit_s=30)
    if outcome.code != 0:
        return ["nvidia-smi: " + complaint(outcome)]
    return outcome.out.strip().splitlines()


def find_sanitizer():
    """Returns compute-sanitizer of a toolkit or in the path, or None."""
    places = [os.path.join(home, *parts)
              for home in (os.environ.get("CUDA_HOME"), "/usr/local/cuda")
              if home
              for parts in (("bin", "compute-sanitizer"),
                            ("compute-sanitizer", "compute-sanitizer"))]
    for place in places:
        if os.access(place, os.X_OK):
            return place
    return shutil.which("compute-sanitizer")


class Facts:

    def __init__(self, bundle):
        self.smi = nvidia_smi()
        listed = bundle.run(["bin/gpu_kernels", "--gpus"], limit_s=60)
        lines = listed.out.strip().splitlines() if listed.code == 0 else []
        # The output is "N devices", a line for each, and versions.
        match = re.match(r"(\d+) devices", lines[0]) if lines else None
        count = int(match.group(1)) if match else 0
        self.gpus = lines[1:1 + count]
        self.versions = lines[-1] if len(lines) > 1 else ""
        self.why_no_gpu = "" if self.gpus else (
            lines[0] if lines else "0 devices: " + complaint(listed))
        where = bundle.run_plain(["with_cuda", "--where"], limit_s=30)
        self.libraries = where.out.strip().splitlines() or [complaint(where)]
        self.torch, self.why_no_torch = self._find_torch(bundle)
        self.sanitizer = find_sanitizer()

    def _find_torch(self, bundle):
        if not self.gpus:
            return None, "no GPU"
        outcome = bundle.run(
            ["peer_python", "-c",
             "import torch; print(torch.__version__, torch.cuda.is_available())"
             ], limit_s=90)
        words = first_line(outcome.out).split()
        if outcome.code != 0 or len(words) != 2:
            return None, complaint(outcome)
        if words[1] != "True":
            return None, "PyTorch %s sees no GPU" % words[0]
        return words[0], ""

    def to_json(self):
        return {"gpus": self.gpus, "why_no_gpu": self.why_no_gpu,
                "nvidia_smi": self.smi, "versions": self.versions,
                "libraries": self.libraries, "torch": self.torch,
                "why_no_torch": self.why_no_torch,
                "sanitizer": self.sanitizer, "host": host()}


def host():
    cpu = ""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    cpu = line.split(":", 1)[1].strip()
                    break
    except OSError:
        pass
    return "%s, %d cores, %s" % (cpu or platform.machine(), os.cpu_count() or 0,
                                 platform.platform())
