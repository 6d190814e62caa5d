#include "nn/serialize/torch/pickle.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/check.h"
#include "nn/serialize/torch/pickle_calls.h"
#include "nn/serialize/torch/pickle_stack.h"

namespace troupe::nn {
namespace {

constexpr std::size_t kPrintedBytesMax = 100;
constexpr int kProtocolMax = 5;
// Bytes of an integer that fits in 64 bits.
constexpr std::size_t kIntegerBytesMax = 8;

// Carries out the codes of a pickle.
class PickleMachine {
 public:
  explicit PickleMachine(absl::string_view bytes) : bytes_(bytes) {}

  absl::StatusOr<PickleTree> Run() {
    // Bounds the time: each code is at least one byte.
    while (!stopped_) {
      TROUPE_ASSIGN_OR_RETURN(const absl::string_view code, Take(1));
      TROUPE_RETURN_IF_ERROR(Do(static_cast<unsigned char>(code[0])));
    }
    stack_.tree().bytes = at_;
    return std::move(stack_.tree());
  }

 private:
  using Items = PickleStack::Items;

  // --- bytes

  absl::StatusOr<absl::string_view> Take(std::uint64_t count) {
    if (count > kPickleBytesMax || at_ + count > kPickleBytesMax) {
      return PickleBeyondLimit("bytes", kPickleBytesMax);
    }
    if (count > bytes_.size() - at_) {
      return absl::OutOfRangeError("ends in the middle of a pickle");
    }
    at_ += count;
    return bytes_.substr(at_ - count, count);
  }

  // Reads a little-endian number of `size` bytes.
  absl::StatusOr<std::uint64_t> TakeNumber(std::size_t size) {
    TROUPE_ASSIGN_OR_RETURN(const absl::string_view bytes, Take(size));
    return Unsigned(bytes);
  }

  static std::uint64_t Unsigned(absl::string_view bytes) {
    std::uint64_t number = 0;
    for (std::size_t i = bytes.size(); i > 0; --i) {
      number = number << 8 | static_cast<unsigned char>(bytes[i - 1]);
    }
    return number;
  }

  // Reads a text behind its length of `size` bytes.
  absl::StatusOr<absl::string_view> TakeText(std::size_t size) {
    TROUPE_ASSIGN_OR_RETURN(const std::uint64_t length, TakeNumber(size));
    return Take(length);
  }

  absl::StatusOr<absl::string_view> TakeLine() {
    const std::size_t end = bytes_.find('\n', at_);
    if (end == absl::string_view::npos) return Take(bytes_.size() - at_ + 1);
    TROUPE_ASSIGN_OR_RETURN(const absl::string_view line, Take(end - at_ + 1));
    return line.substr(0, line.size() - 1);
  }

  absl::StatusOr<std::uint64_t> TakePlace() {
    TROUPE_ASSIGN_OR_RETURN(const absl::string_view line, TakeLine());
    std::uint64_t place = 0;
    if (!absl::SimpleAtoi(line, &place)) {
      return PickleDamaged("a place of its memo is no number");
    }
    return place;
  }

  absl::Status PushTaken(PickleKind kind,
                         const absl::StatusOr<absl::string_view>& text) {
    return text.ok() ? stack_.PushText(kind, *text) : text.status();
  }

  // --- names and calls

  absl::Status PushName(absl::string_view module, absl::string_view name) {
    if (module.size() + name.size() > kPickleNameBytesMax) {
      return PickleBeyondLimit("bytes in a name", kPickleNameBytesMax);
    }
    stack_.tree().made_texts.push_back(absl::StrCat(module, ".", name));
    return stack_.PushText(PickleKind::kName, stack_.tree().made_texts.back());
  }

  absl::Status TakeNameLines() {
    TROUPE_ASSIGN_OR_RETURN(const absl::string_view module, TakeLine());
    TROUPE_ASSIGN_OR_RETURN(const absl::string_view name, TakeLine());
    return PushName(module, name);
  }

  absl::Status PushNameFromStack() {
    TROUPE_ASSIGN_OR_RETURN(const PickleId name, stack_.Pop());
    TROUPE_ASSIGN_OR_RETURN(const PickleId module, stack_.Pop());
    const PickleTree& tree = stack_.tree();
    if (tree[name].kind != PickleKind::kText ||
        tree[module].kind != PickleKind::kText) {
      return PickleDamaged("a name is no text");
    }
    return PushName(tree[module].text, tree[name].text);
  }

  // Makes the result of calling `callee`, which is not called.
  absl::Status PushCall(PickleId callee, PickleId arguments) {
    PickleTree& tree = stack_.tree();
    if (tree[callee].kind != PickleKind::kName) {
      return absl::PermissionDeniedError(absl::StrCat(
          "has a pickled call of ", tree.Describe(callee), ", no name"));
    }
    const absl::string_view name = tree[callee].text;
    switch (MeaningOf(name)) {
      case PickleCall::kDictionary:
        return stack_.PushNew(PickleKind::kDict);
      case PickleCall::kTensor:
      case PickleCall::kPassedOver:
        TROUPE_RETURN_IF_ERROR(stack_.PushNew(PickleKind::kCall, {arguments}));
        tree.values.back().text = name;
        return absl::OkStatus();
      case PickleCall::kRefused:
        break;
    }
    return absl::PermissionDeniedError(
        absl::StrCat("has a pickled call of \"", PrintableName(name),
                     "\", which Troupe neither runs nor knows to be harmless"));
  }

  absl::Status Reduce() {
    TROUPE_ASSIGN_OR_RETURN(const PickleId arguments, stack_.Pop());
    TROUPE_ASSIGN_OR_RETURN(const PickleId callee, stack_.Pop());
    return PushCall(callee, arguments);
  }

  // Makes an instance of a class: `count` values from the class on.
  absl::Status ReduceOf(absl::StatusOr<Items> items) {
    TROUPE_RETURN_IF_ERROR(items.status());
    if (items->empty()) return PickleDamaged("a call has no class");
    const PickleId callee = (*items)[0];
    items->erase(items->begin());
    TROUPE_ASSIGN_OR_RETURN(const PickleId arguments,
                            stack_.Make(PickleKind::kTuple, std::move(*items)));
    return PushCall(callee, arguments);
  }

  absl::Status ReduceLines() {
    TROUPE_ASSIGN_OR_RETURN(Items items, stack_.PopToMark());
    TROUPE_RETURN_IF_ERROR(TakeNameLines());
    TROUPE_ASSIGN_OR_RETURN(const PickleId callee, stack_.Pop());
    items.insert(items.begin(), callee);
    return ReduceOf(std::move(items));
  }

  absl::Status ReduceWithKeywords() {
    TROUPE_RETURN_IF_ERROR(stack_.Pop().status());
    return Reduce();
  }

  // --- numbers

  absl::Status PushSigned(const absl::StatusOr<absl::string_view>& bytes) {
    TROUPE_RETURN_IF_ERROR(bytes.status());
    const std::size_t size = bytes->size();
    if (size > kIntegerBytesMax) return stack_.PushNew(PickleKind::kOpaque);
    std::uint64_t number = Unsigned(*bytes);
    const bool negative = size > 0 && (bytes->back() & 0x80) != 0;
    if (negative && size < kIntegerBytesMax) {
      number |= ~std::uint64_t{0} << (8 * size);
    }
    return stack_.PushNumber(PickleKind::kInteger,
                             static_cast<std::int64_t>(number));
  }

  absl::Status PushLineNumber(bool is_long) {
    TROUPE_ASSIGN_OR_RETURN(absl::string_view line, TakeLine());
    if (!is_long && (line == "00" || line == "01")) {
      return stack_.PushNumber(PickleKind::kBool, line == "01");
    }
    if (is_long) absl::ConsumeSuffix(&line, "L");
    std::int64_t number = 0;
    if (!absl::SimpleAtoi(line, &number))
      return stack_.PushNew(PickleKind::kOpaque);
    return stack_.PushNumber(PickleKind::kInteger, number);
  }

  absl::Status PushUnsigned(std::size_t size) {
    TROUPE_ASSIGN_OR_RETURN(const std::uint64_t number, TakeNumber(size));
    return stack_.PushNumber(PickleKind::kInteger,
                             static_cast<std::int64_t>(number));
  }

  // A text between quotes, as protocol 0 has it; escapes are kept as they are.
  absl::Status PushQuoted() {
    TROUPE_ASSIGN_OR_RETURN(const absl::string_view line, TakeLine());
    if (line.size() < 2 || line.front() != line.back()) {
      return PickleDamaged("a text has no quotes");
    }
    return stack_.PushText(PickleKind::kText, line.substr(1, line.size() - 2));
  }

  absl::Status PushExternal() {
    TROUPE_ASSIGN_OR_RETURN(const PickleId id, stack_.Pop());
    return stack_.PushNew(PickleKind::kExternal, {id});
  }

  absl::Status CheckProtocol() {
    TROUPE_ASSIGN_OR_RETURN(const std::uint64_t protocol, TakeNumber(1));
    if (protocol <= kProtocolMax) return absl::OkStatus();
    return PickleDamaged(absl::StrCat("there is no protocol ", protocol));
  }

  absl::Status Stop() {
    TROUPE_ASSIGN_OR_RETURN(stack_.tree().root, stack_.Pop());
    stopped_ = true;
    return absl::OkStatus();
  }

  absl::Status Do(unsigned char code);
  absl::Status DoNumberOrText(unsigned char code);

  template <typename T, typename Then>
  static absl::Status With(const absl::StatusOr<T>& value, const Then& then) {
    return value.ok() ? then(*value) : value.status();
  }

  const absl::string_view bytes_;
  std::size_t at_ = 0;
  bool stopped_ = false;
  PickleStack stack_;
};

// The codes are those of Lib/pickle.py.
absl::Status PickleMachine::Do(unsigned char code) {
  const auto remember = [this](std::uint64_t place) {
    return stack_.Remember(place);
  };
  const auto recall = [this](std::uint64_t place) {
    return stack_.Recall(place);
  };
  switch (code) {
    case 0x80:
      return CheckProtocol();
    case 0x95:  // FRAME
      return Take(8).status();
    case '.':
      return Stop();
    case '(':
      return stack_.Mark();
    case '0':
      return stack_.PopOrMark();
    case '1':
      return stack_.PopToMark().status();
    case '2':
      return stack_.Duplicate();
    case ')':
      return stack_.PushNew(PickleKind::kTuple);
    case ']':
    case 0x8f:  // EMPTY_SET
      return stack_.PushNew(PickleKind::kList);
    case '}':
      return stack_.PushNew(PickleKind::kDict);
    case 't':
      return stack_.PushCollected(PickleKind::kTuple, stack_.PopToMark());
    case 0x85:
    case 0x86:
    case 0x87:  // TUPLE1, TUPLE2, TUPLE3
      return stack_.PushCollected(PickleKind::kTuple,
                                  stack_.PopSome(code - 0x84));
    case 'l':
    case 0x91:  // FROZENSET
      return stack_.PushCollected(PickleKind::kList, stack_.PopToMark());
    case 'd':
      return stack_.PushCollected(PickleKind::kDict, stack_.PopToMark());
    case 'a':
      return stack_.Extend(PickleKind::kList, stack_.PopSome(1));
    case 'e':
    case 0x90:  // ADDITEMS
      return stack_.Extend(PickleKind::kList, stack_.PopToMark());
    case 's':
      return stack_.Extend(PickleKind::kDict, stack_.PopSome(2));
    case 'u':
      return stack_.Extend(PickleKind::kDict, stack_.PopToMark());
    case 'b':  // BUILD, which sets attributes
      return stack_.Pop().status();
    case 'p':
      return With(TakePlace(), remember);
    case 'q':
      return With(TakeNumber(1), remember);
    case 'r':
      return With(TakeNumber(4), remember);
    case 0x94:  // MEMOIZE
      return stack_.Remember(stack_.remembered());
    case 'g':
      return With(TakePlace(), recall);
    case 'h':
      return With(TakeNumber(1), recall);
    case 'j':
      return With(TakeNumber(4), recall);
    case 'c':
      return TakeNameLines();
    case 0x93:  // STACK_GLOBAL
      return PushNameFromStack();
    case 'R':
    case 0x81:  // NEWOBJ
      return Reduce();
    case 0x92:  // NEWOBJ_EX
      return ReduceWithKeywords();
    case 'i':
      return ReduceLines();
    case 'o':
      return ReduceOf(stack_.PopToMark());
    case 'Q':
      return PushExternal();
    default:
      return DoNumberOrText(code);
  }
}

absl::Status PickleMachine::DoNumberOrText(unsigned char code) {
  switch (code) {
    case 'N':
      return stack_.PushNew(PickleKind::kNone);
    case 0x88:
    case 0x89:  // NEWTRUE, NEWFALSE
      return stack_.PushNumber(PickleKind::kBool, code == 0x88);
    case 'F':
      return PushTaken(PickleKind::kFloat, TakeLine());
    case 'G':
      return PushTaken(PickleKind::kFloat, Take(8));
    case 'I':
    case 'L':
      return PushLineNumber(/*is_long=*/code == 'L');
    case 'J':
      return PushSigned(Take(4));
    case 'K':
      return PushUnsigned(1);
    case 'M':
      return PushUnsigned(2);
    case 0x8a:  // LONG1
      return PushSigned(TakeText(1));
    case 0x8b:  // LONG4
      return PushSigned(TakeText(4));
    case 'S':
      return PushQuoted();
    case 'V':
      return PushTaken(PickleKind::kText, TakeLine());
    case 'U':
    case 'C':
    case 0x8c:  // SHORT_BINUNICODE
      return PushTaken(PickleKind::kText, TakeText(1));
    case 'T':
    case 'B':
    case 'X':
      return PushTaken(PickleKind::kText, TakeText(4));
    case 0x8d:
    case 0x8e:
    case 0x96:  // BINUNICODE8, BINBYTES8, BYTEARRAY8
      return PushTaken(PickleKind::kText, TakeText(8));
    default:
      return PickleDamaged(absl::StrCat("it has no code ", code));
  }
}

}  // namespace

absl::string_view PickleTree::TextOf(PickleId id) const {
  return values[id].kind == PickleKind::kText ? values[id].text
                                              : absl::string_view();
}

std::string PickleTree::Describe(PickleId id) const {
  switch (values[id].kind) {
    case PickleKind::kNone:
      return "None";
    case PickleKind::kBool:
    case PickleKind::kInteger:
    case PickleKind::kFloat:
      return "a number";
    case PickleKind::kText:
      return "a text";
    case PickleKind::kList:
      return "a list";
    case PickleKind::kTuple:
      return "a tuple";
    case PickleKind::kDict:
      return "a dictionary";
    case PickleKind::kName:
    case PickleKind::kCall:
      return PrintableName(values[id].text);
    case PickleKind::kExternal:
    case PickleKind::kOpaque:
      break;
  }
  return "an object";
}

absl::StatusOr<PickleTree> ParsePickle(absl::string_view bytes) {
  return PickleMachine(bytes).Run();
}

std::string PrintableName(absl::string_view text) {
  std::string printable = absl::CHexEscape(text.substr(0, kPrintedBytesMax));
  if (text.size() > kPrintedBytesMax) printable.append("...");
  return printable;
}

}  // namespace troupe::nn
