// The first and last well-formed sequence of each length, and what lies just outside (RFC 3629).
#include "mallocgame/base/utf8.h"

#include <string>

#include "tests/catch.h"

namespace mallocgame {
namespace {

TEST_CASE("well-formed UTF-8") {
  for (const std::string text : {
           "",
           "plain",
           "\x7F",
           "\xC2\x80",          // U+0080, the first of two bytes
           "\xDF\xBF",          // U+07FF
           "\xE0\xA0\x80",      // U+0800, the first of three
           "\xED\x9F\xBF",      // U+D7FF, the last before the surrogates
           "\xEE\x80\x80",      // U+E000, the first behind them
           "\xEF\xBF\xBF",      // U+FFFF
           "\xF0\x90\x80\x80",  // U+10000, the first of four
           "\xF4\x8F\xBF\xBF",  // U+10FFFF, the last there is
           "a\xC3\xA4z",
       }) {
    INFO(text);
    CHECK(IsUtf8(text));
  }
  CHECK(IsUtf8(std::string("a\0b", 3)));
}

TEST_CASE("text that is not UTF-8") {
  for (const std::string text : {
           "\x80",              // a byte that continues nothing
           "\xC1\xBF",          // U+007F in two bytes
           "\xC2",              // cut off
           "\xC2\x41",          // the second byte does not continue
           "\xE0\x9F\xBF",      // U+07FF in three bytes
           "\xE2\x82",          // cut off
           "\xED\xA0\x80",      // U+D800, a surrogate
           "\xF0\x8F\xBF\xBF",  // U+FFFF in four bytes
           "\xF0\x90\x80",      // cut off
           "\xF4\x90\x80\x80",  // beyond U+10FFFF
           "\xF5\x80\x80\x80",
           "\xFF",
           "good \xC3\xA4, then \xE4",  // Latin-1
       }) {
    INFO(text.size());
    CHECK_FALSE(IsUtf8(text));
  }
}

}  // namespace
}  // namespace mallocgame
