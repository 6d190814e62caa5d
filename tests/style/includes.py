"""Sources compile without the precompiled header: a rule of check_style.py.

    for path, line, sentence in includes(tree): ...

The precompiled header (third_party/pch) hides a header that a source uses and
neither it nor anything that it includes brings. So names of the standard library
and of Abseil are looked for here.
"""

import functools
import re

# (names, header); a name stands for itself, whatever follows. A header of ours uses no
# name of std:: or absl:: that is not here: headers are compiled alone with the
# precompiled header (headers.bzl), so nothing else finds what they lack.
NAMES = [
    (r"std::(string|to_string|stoi|stod|getline)\b", "<string>"),
    (r"std::vector\b", "<vector>"),
    (r"std::(unique_ptr|shared_ptr|weak_ptr|make_unique|make_shared"
     r"|enable_shared_from_this|dynamic_pointer_cast|allocator_arg)\b",
     "<memory>"),
    (r"std::(optional|nullopt)\b", "<optional>"),
    (r"std::(function|reference_wrapper|cref|invoke|less)\b", "<functional>"),
    (r"std::(multi)?map\b", "<map>"),
    (r"std::(multi)?set\b", "<set>"),
    (r"std::deque\b", "<deque>"),
    (r"std::array\b", "<array>"),
    (r"std::(variant|holds_alternative|get_if|monostate|visit)\b", "<variant>"),
    (r"std::(tuple|tie|make_tuple|apply)\b", "<tuple>"),
    (r"std::list\b", "<list>"),
    (r"std::unordered_map\b", "<unordered_map>"),
    (r"std::(sort|stable_sort|min_element|max_element|find_if|count_if|all_of"
     r"|any_of|none_of|transform|fill_n|lower_bound|upper_bound|reverse|clamp"
     r"|remove_if|copy_n|find|count|min|max|copy|fill)\b", "<algorithm>"),
    (r"std::(accumulate|iota|gcd|lcm)\b", "<numeric>"),
    (r"std::numeric_limits\b", "<limits>"),
    (r"std::(u?int(8|16|32|64)_t|u?intptr_t)\b", "<cstdint>"),
    (r"std::(mem(cpy|cmp|set|move)|strlen|strcmp|strerror)\b", "<cstring>"),
    (r"std::(f?printf|snprintf|fflush|fputs|FILE)\b", "<cstdio>"),
    (r"std::(getenv|abort|exit|atexit|free)\b", "<cstdlib>"),
    (r"std::(fabs|sqrt|exp|log|log2|pow|floor|ceil|isnan|isfinite|isinf|fma"
     r"|ldexp|tanh|erf|lround|llround)\b", "<cmath>"),
    (r"std::(atomic|memory_order_\w+)\b", "<atomic>"),
    (r"std::(thread|this_thread)\b", "<thread>"),
    (r"std::(mutex|lock_guard|unique_lock|scoped_lock|call_once)\b", "<mutex>"),
    (r"std::condition_variable\b", "<condition_variable>"),
    (r"std::chrono\b", "<chrono>"),
    (r"std::(promise|shared_future)\b", "<future>"),
    (r"std::ostream\b", "<ostream>"),
    (r"std::[io]?stringstream\b", "<sstream>"),
    (r"std::[io]fstream\b", "<fstream>"),
    (r"std::(move|forward|swap|pair|declval|get)\b", "<utility>"),
    (r"std::exchange\b", "<utility>"),
    (r"std::(is_\w+|decay_t|enable_if_t|conditional_t|common_type|void_t"
     r"|invoke_result_t|remove_\w+_t|integral_constant|true_type)\b",
     "<type_traits>"),
    (r"std::(size_t|ptrdiff_t|nullptr_t)\b", "<cstddef>"),
    (r"std::byte\b", "<cstddef>"),
    (r"std::initializer_list\b", "<initializer_list>"),
    (r"std::(begin|size|forward_iterator_tag)\b", "<iterator>"),
    (r"std::(exception|exception_ptr|current_exception|rethrow_exception"
     r"|uncaught_exceptions|terminate)\b", "<exception>"),
    (r"std::(runtime_error|logic_error)\b", "<stdexcept>"),
    (r"std::bad_alloc\b", "<new>"),
    (r"std::type_info\b", "<typeinfo>"),
    (r"std::va_list\b", "<cstdarg>"),
    (r"absl::StatusOr\b", '"absl/status/statusor.h"'),
    (r"absl::(Status|StatusCode|OkStatus|\w+Error|Is[A-Z]\w+)\b", '"absl/status/status.h"'),
    (r"absl::(StrCat|StrAppend|Hex|AlphaNum)\b", '"absl/strings/str_cat.h"'),
    (r"absl::StrJoin\b", '"absl/strings/str_join.h"'),
    (r"absl::(StrSplit|SkipEmpty|SkipWhitespace|MaxSplits)\b",
     '"absl/strings/str_split.h"'),
    (r"absl::(StrFormat|SNPrintF|PrintF|StrAppendFormat|FormatSpec)\b",
     '"absl/strings/str_format.h"'),
    (r"absl::(StrContains|StartsWith|EndsWith)\b", '"absl/strings/match.h"'),
    (r"absl::Simple(Atoi|Atod|Atof|Atob|HexAtoi)\b", '"absl/strings/numbers.h"'),
    (r"absl::string_view\b", '"absl/strings/string_view.h"'),
    (r"absl::(Span|MakeSpan|MakeConstSpan)\b", '"absl/types/span.h"'),
    (r"absl::(Duration|Time|Seconds|Minutes|Hours|Milliseconds|Microseconds"
     r"|Infinite\w+|ZeroDuration|FormatDuration|(From|To)Chrono\w*"
     r"|To(Int64|Double)\w+)\b", '"absl/time/time.h"'),
    (r"absl::Now\b", '"absl/time/clock.h"'),
    (r"absl::(Mutex|MutexLock|CondVar|ReaderMutexLock|Condition)\b",
     '"absl/synchronization/mutex.h"'),
    (r"absl::Notification\b", '"absl/synchronization/notification.h"'),
    (r"absl::InlinedVector\b", '"absl/container/inlined_vector.h"'),
    (r"absl::FunctionRef\b", '"absl/functional/function_ref.h"'),
    (r"absl::Consume(Prefix|Suffix)\b", '"absl/strings/strip.h"'),
    (r"absl::ascii_\w+\b", '"absl/strings/ascii.h"'),
    (r"absl::StrReplaceAll\b", '"absl/strings/str_replace.h"'),
    (r"absl::flat_hash_set\b", '"absl/container/flat_hash_set.h"'),
    (r"absl::flat_hash_map\b", '"absl/container/flat_hash_map.h"'),
    (r"absl::c_\w+\b", '"absl/algorithm/container.h"'),
    (r"ABSL_(\w*GUARDED_BY|LOCKS_EXCLUDED|\w+_LOCKS_REQUIRED|LOCK_RETURNED)\b",
     '"absl/base/thread_annotations.h"'),
    (r"ABSL_PREDICT_(FALSE|TRUE)\b", '"absl/base/optimization.h"'),
    (r"(EXPECT|ASSERT)_(?!THAT)[A-Z_]+\b|TEST(_[FP])?\b|testing::Test\b",
     '"gtest/gtest.h"'),
    (r"(EXPECT|ASSERT)_THAT\b|MOCK_METHOD\b", '"gmock/gmock.h"'),
    (r"(?<![\w:.>])(pid_t|ssize_t)\b", "<sys/types.h>"),
    (r"(?<![\w:.>])(stderr|stdout)\b", "<cstdio>"),
]
# What may be a name of NAMES.
_NAME = re.compile(
    r"\b(?:(?:std|absl)::\w+|testing::Test\b|(?:ABSL|EXPECT|ASSERT)_\w+"
    r"|TEST(?:_[FP])?\b|MOCK_METHOD\b)"
    r"|(?<![\w:.>])(?:ssize_t|pid_t|stderr|stdout)\b")
_BASIC = ["<type_traits>", "<cstddef>"]
_USUAL = ["<utility>", "<initializer_list>"] + _BASIC
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
    '"absl/synchronization/mutex.h"': ['"absl/time/time.h"', "<cstdint>",
                                       '"absl/base/thread_annotations.h"'],
    '"absl/time/clock.h"': ['"absl/time/time.h"'],
    '"absl/time/time.h"': ["<chrono>", "<cstdint>"],
    '"gtest/gtest.h"': ["<memory>", "<string>", "<vector>", "<limits>",
                        "<set>", "<tuple>", "<functional>", "<cstdint>",
                        "<ostream>", "<cstdio>", "<sys/types.h>"],
    '"gmock/gmock.h"': ['"gtest/gtest.h"'],
    "<fcntl.h>": ["<sys/types.h>"],
    "<signal.h>": ["<sys/types.h>"],
    "<sys/socket.h>": ["<sys/types.h>"],
    "<sys/stat.h>": ["<sys/types.h>"],
    "<sys/uio.h>": ["<sys/types.h>"],
    "<sys/wait.h>": ["<sys/types.h>"],
    "<unistd.h>": ["<sys/types.h>"],
    "<memory>": ["<cstdint>", "<utility>", "<tuple>", "<exception>", "<new>",
                 "<typeinfo>"] + _BASIC,
    "<filesystem>": ["<string>"],
    "<fstream>": ["<string>", "<ostream>"],
    "<iostream>": ["<string>", "<ostream>"],
    "<sstream>": ["<string>", "<ostream>"],
    "<ostream>": ["<string>", "<exception>", "<stdexcept>"],
    "<string>": ["<iterator>", "<new>"] + _USUAL,
    "<vector>": ["<iterator>", "<new>"] + _USUAL,
    "<optional>": ["<exception>", "<new>", "<initializer_list>"] + _BASIC,
    "<functional>": ["<iterator>", "<new>", "<tuple>", "<typeinfo>"] + _USUAL,
    "<map>": ["<iterator>", "<new>", "<tuple>"] + _USUAL,
    "<set>": ["<iterator>", "<new>"] + _USUAL,
    "<deque>": ["<iterator>", "<new>"] + _USUAL,
    "<list>": ["<iterator>", "<new>"] + _USUAL,
    "<unordered_map>": ["<iterator>", "<new>", "<tuple>"] + _USUAL,
    "<array>": ["<iterator>"] + _USUAL,
    "<variant>": ["<initializer_list>"] + _BASIC,
    "<tuple>": ["<utility>"] + _BASIC,
    "<algorithm>": ["<new>"] + _USUAL,
    "<numeric>": _BASIC,
    "<iterator>": ["<stdexcept>"] + _USUAL,
    "<cmath>": ["<utility>"] + _BASIC,
    "<atomic>": _BASIC,
    "<thread>": ["<tuple>", "<utility>"] + _BASIC,
    "<mutex>": ["<string>", "<exception>", "<stdexcept>", "<tuple>"] + _USUAL,
    "<condition_variable>": ["<mutex>"],
    "<future>": ["<mutex>"],
    "<chrono>": _BASIC,
    "<utility>": ["<initializer_list>"] + _BASIC,
    "<type_traits>": ["<cstddef>"],
    "<exception>": ["<new>", "<typeinfo>"] + _BASIC,
    "<stdexcept>": ["<string>", "<exception>"],
    "<cstdlib>": ["<cstddef>"],
    "<cstring>": ["<cstddef>"],
    "<cstdio>": ["<cstddef>"],
    "<cstdint>": ["<cstddef>"],
    "<limits>": ["<cstddef>"],
    "<initializer_list>": ["<cstddef>"],
}
_ALL = re.compile("|".join("(%s)" % re.sub(r"\((?!\?)", "(?:", names)
                           for names, _ in NAMES))
_INCLUDE = re.compile(r'#include\s+(<[^>]+>|"[^"]+")')


def code_of(line):
    """The line without a // comment and without the text of strings."""
    line = re.sub(r'"(\\.|[^"\\])*"', '""', line)
    return line.split("//")[0]


def code_lines(file):
    """Yields (number, code) of what is no directive and no macro's text, which is
    for those who use the macro."""
    in_macro = False
    for number, line in file.numbered():
        in_macro = in_macro or line.startswith("#")
        if not in_macro:
            yield number, code_of(line)
        in_macro = in_macro and line.endswith("\\")


@functools.lru_cache(maxsize=None)
def header_of(name):
    """Returns the header of a name, or None."""
    match = _ALL.match(name)
    return match and NAMES[match.lastindex - 1][1]


def first_uses(file):
    """{header: line number of the first name that needs it}."""
    first = {}
    for number, code in code_lines(file):
        for name in _NAME.findall(code):
            first.setdefault(header_of(name), number)
    first.pop(None, None)
    return first


def unknown_names(file):
    """Yields (line number, name) of names of std:: and absl:: without a header."""
    for number, code in code_lines(file):
        for name in _NAME.findall(code):
            if name.startswith(("std::", "absl::")) and not header_of(name):
                yield number, name


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
        if file.path.endswith(".h"):
            for number, name in unknown_names(file):
                yield (file.path, number,
                       "include; add %s and its header to NAMES of "
                       "tests/style/includes.py" % name)
