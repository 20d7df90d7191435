// The columns of what networks see: a table of features gives each column its name and its meaning.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string_view>

namespace mallocgame {

// A column's name, and what its numbers mean, with unit and scale.
struct Feature {
  const char* name;
  const char* meaning;
};

// The column that a table gives the name `name`. A name that is not in the table does not compile.
template <size_t kColumns>
consteval size_t ColumnOf(const Feature (&table)[kColumns], std::string_view name) {
  for (size_t column = 0; column < kColumns; ++column) {
    if (table[column].name == name) return column;
  }
  throw std::logic_error("the table has no such feature");
}

}  // namespace mallocgame
