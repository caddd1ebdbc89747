// Random statements over the tables of a reference: the same ones for the same seed.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "reference.h"

namespace tacho::query {

struct Generated {
  std::string sql;
  bool ordered = false;  // ORDER BY names every column of the result: the rows have one order
};

/// "A.x = B.y" of tables that belong together.
struct JoinPair {
  std::string left, left_column, right, right_column;
};

class Generator {
 public:
  Generator(const Reference& reference, const std::vector<std::string>& tables, std::vector<JoinPair> joins,
            uint64_t seed);
  /// Every third one is of the column engine's shape, every third one nearly so, the rest anything.
  Generated next();

 private:
  struct Column {
    std::string name;
    char type;   // 'i', 'r', 't'
    bool exact;  // sums of it are exact in doubles, however they are added up
    std::vector<std::string> samples;
  };
  struct Table {
    std::string name;
    std::vector<Column> columns;
  };
  struct Place {  // a column with its qualifier
    const Column* column;
    std::string text;
  };
  struct From {
    std::string text;
    std::vector<Place> places;
  };

  uint64_t below(uint64_t end) { return random_() % end; }
  bool chance(int percent) { return static_cast<int>(below(100)) < percent; }
  template <typename T>
  const T& pick(const std::vector<T>& all) {
    return all[below(all.size())];
  }
  const char* one_of(std::initializer_list<const char*> words) { return words.begin()[below(words.size())]; }

  From from(bool simple);
  From single(bool alias);
  const Place* place(const From& from, const char* types);
  std::string literal(const Column& column, bool odd);
  std::string simple_condition(const From& from);
  std::string condition(const From& from, int depth);
  std::string where(const From& from, bool simple);
  std::string whole(const From& from, int depth);
  std::string scalar(const From& from, int depth);
  std::string aggregate(const From& from, bool simple);
  std::string order(size_t items, bool& ordered, bool& limited);
  Generated sums(bool simple);
  Generated rows();
  Generated nested();

  std::vector<Table> tables_;
  std::vector<JoinPair> joins_;
  std::mt19937_64 random_;
  uint64_t count_ = 0;
};

}  // namespace tacho::query
