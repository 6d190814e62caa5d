// Uses std::string without including <string>, on purpose.

#ifndef TESTS_STYLE_PLANTED_FORGETS_AN_INCLUDE_H_
#define TESTS_STYLE_PLANTED_FORGETS_AN_INCLUDE_H_

inline std::string Name() { return "planted"; }

#endif  // TESTS_STYLE_PLANTED_FORGETS_AN_INCLUDE_H_
