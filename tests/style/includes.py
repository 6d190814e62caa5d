"""Sources compile without the precompiled header: a rule of check_style.py.

    for path, line, sentence in includes(tree): ...

The precompiled header (third_party/pch) hides a header that a source uses and
neither it nor anything that it includes brings. So names of the standard library
and of Abseil are looked for here.
"""

import os
import re

# (names, header); a name stands for itself, whatever follows.
NAMES = [
    (r"std::(string|to_string|stoi|stod|getline)\b", "<string>"),
    (r"std::vector\b", "<vector>"),
    (r"std::(unique_ptr|shared_ptr|weak_ptr|make_unique|make_shared)\b",
     "<memory>"),
    (r"std::(optional|nullopt)\b", "<optional>"),
    (r"std::(function|reference_wrapper|cref)\b", "<functional>"),
    (r"std::(multi)?map\b", "<map>"),
    (r"std::(multi)?set\b", "<set>"),
    (r"std::deque\b", "<deque>"),
    (r"std::array\b", "<array>"),
    (r"std::(variant|holds_alternative|get_if|monostate)\b", "<variant>"),
    (r"std::(tuple|tie|make_tuple)\b", "<tuple>"),
    (r"std::(sort|stable_sort|min_element|max_element|find_if|count_if|all_of"
     r"|any_of|none_of|transform|fill_n|lower_bound|upper_bound|reverse|clamp"
     r"|remove_if|copy_n)\b", "<algorithm>"),
    (r"std::(accumulate|iota|gcd|lcm)\b", "<numeric>"),
    (r"std::numeric_limits\b", "<limits>"),
    (r"std::(u?int(8|16|32|64)_t|u?intptr_t)\b", "<cstdint>"),
    (r"std::(mem(cpy|cmp|set|move)|strlen|strcmp|strerror)\b", "<cstring>"),
    (r"std::(f?printf|snprintf|fflush|fputs|FILE)\b", "<cstdio>"),
    (r"std::(getenv|abort|exit|atexit)\b", "<cstdlib>"),
    (r"std::(fabs|sqrt|exp|log|log2|pow|floor|ceil|isnan|isfinite|isinf|fma"
     r"|ldexp|tanh|erf|lround|llround)\b", "<cmath>"),
    (r"std::(atomic|memory_order_\w+)\b", "<atomic>"),
    (r"std::(thread|this_thread)\b", "<thread>"),
    (r"std::(mutex|lock_guard|unique_lock|scoped_lock|call_once)\b", "<mutex>"),
    (r"std::condition_variable\b", "<condition_variable>"),
    (r"std::chrono\b", "<chrono>"),
    (r"std::[io]?stringstream\b", "<sstream>"),
    (r"std::[io]fstream\b", "<fstream>"),
    (r"absl::StatusOr\b", '"absl/status/statusor.h"'),
    (r"absl::(Status|OkStatus|\w+Error|Is[A-Z]\w+)\b", '"absl/status/status.h"'),
    (r"absl::(StrCat|StrAppend|Hex|AlphaNum)\b", '"absl/strings/str_cat.h"'),
    (r"absl::StrJoin\b", '"absl/strings/str_join.h"'),
    (r"absl::(StrSplit|SkipEmpty|SkipWhitespace|MaxSplits)\b",
     '"absl/strings/str_split.h"'),
    (r"absl::(StrFormat|SNPrintF|PrintF|StrAppendFormat)\b",
     '"absl/strings/str_format.h"'),
    (r"absl::(StrContains|StartsWith|EndsWith)\b", '"absl/strings/match.h"'),
    (r"absl::Simple(Atoi|Atod|Atof|Atob|HexAtoi)\b", '"absl/strings/numbers.h"'),
    (r"absl::string_view\b", '"absl/strings/string_view.h"'),
    (r"absl::(Span|MakeSpan|MakeConstSpan)\b", '"absl/types/span.h"'),
    (r"absl::(Duration|Time|Seconds|Minutes|Milliseconds|Infinite\w+)\b",
     '"absl/time/time.h"'),
    (r"absl::Now\b", '"absl/time/clock.h"'),
    (r"absl::(Mutex|MutexLock|CondVar|ReaderMutexLock|Condition)\b",
     '"absl/synchronization/mutex.h"'),
    (r"absl::Notification\b", '"absl/synchronization/notification.h"'),
    (r"absl::flat_hash_map\b", '"absl/container/flat_hash_map.h"'),
    (r"absl::c_\w+\b", '"absl/algorithm/container.h"'),
]
# What headers of libraries are known to bring along.
BROUGHT = {
    '"absl/status/statusor.h"': ['"absl/status/status.h"', "<string>"],
    '"absl/status/status.h"': ['"absl/strings/string_view.h"', "<string>"],
    '"absl/strings/str_cat.h"': ['"absl/strings/string_view.h"', "<string>",
                                 "<cstdint>"],
    '"absl/strings/str_format.h"': ['"absl/strings/string_view.h"', "<string>"],
    '"absl/strings/str_split.h"': ['"absl/strings/string_view.h"', "<string>",
                                   "<vector>"],
    '"absl/strings/str_join.h"': ['"absl/strings/string_view.h"', "<string>"],
    '"absl/synchronization/mutex.h"': ['"absl/time/time.h"', "<cstdint>"],
    '"absl/time/clock.h"': ['"absl/time/time.h"'],
    '"absl/time/time.h"': ["<chrono>", "<cstdint>"],
    '"gtest/gtest.h"': ["<memory>", "<string>", "<vector>", "<limits>",
                        "<set>", "<tuple>", "<functional>", "<cstdint>"],
    '"gmock/gmock.h"': ['"gtest/gtest.h"'],
    "<memory>": ["<cstdint>"],
    "<filesystem>": ["<string>"],
    "<fstream>": ["<string>"],
    "<iostream>": ["<string>"],
    "<sstream>": ["<string>"],
}
_ALL = re.compile("|".join("(%s)" % re.sub(r"\((?!\?)", "(?:", names)
                           for names, _ in NAMES))
_INCLUDE = re.compile(r'#include\s+(<[^>]+>|"[^"]+")')


def code_of(line):
    """The line without a // comment and without the text of strings."""
    line = re.sub(r'"(\\.|[^"\\])*"', '""', line)
    return line.split("//")[0]


def first_uses(file):
    """{header: line number of the first name that needs it}."""
    first = {}
    for number, line in file.numbered():
        # A macro's text is for those who use it.
        if "::" not in line or line.startswith("#") or line.endswith("\\"):
            continue
        for match in _ALL.finditer(code_of(line)):
            first.setdefault(NAMES[match.lastindex - 1][1], number)
    return first


class Includes:
    """What the files of a tree include, by way of others too."""

    def __init__(self, tree):
        self._direct = {
            file.path: [match.group(1) for match in
                        (_INCLUDE.match(line) for line in file.lines) if match]
            for file in tree.files if file.is_cpp}
        self._all = {}

    def of(self, name):
        """All headers that a path of the tree, or a header as it is included,
        brings."""
        if name not in self._all:
            self._all[name] = set()  # where headers include each other
            found = set()
            for header in self._direct.get(name.strip('"'),
                                           BROUGHT.get(name, [])):
                found.add(header)
                found |= self.of(header)
            self._all[name] = found
        return self._all[name]


def includes(tree):
    reach = Includes(tree)
    for file in tree.files:
        if not file.path.endswith((".h", ".cc")):
            continue
        reached = reach.of(file.path)
        for header, number in sorted(first_uses(file).items()):
            if header not in reached:
                yield file.path, number, "include; add #include " + header
