// Scans of relations: pruning, filtering and ordering (relation.h).
#include "query/engine/relation.h"

#include <sqlite3.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <numeric>

#include "base/files/temporary.h"

namespace tacho::query {

using event::kUnknown;
using event::Table;

namespace {

constexpr size_t kDimensionBatch = 1 << 16;
constexpr size_t kMostColumns = 48;  // in a stored table

bool dimension(int table) {
  return static_cast<size_t>(table) >= event::kFirstDimension;
}

int compare_texts(std::string_view a, std::string_view b) {
  const int order = std::memcmp(a.data(), b.data(), std::min(a.size(), b.size()));
  return order != 0 ? order : a.size() < b.size() ? -1 : a.size() > b.size() ? 1 : 0;
}

}  // namespace

void Store::keep(uint64_t key, Values values) {
  if (entries_.size() >= kMost) {
    index_.erase(entries_.back().key);
    entries_.pop_back();
  }
  entries_.push_front({key, std::move(values)});
  index_[key] = entries_.begin();
}

Result<Values> Store::column(int table, size_t chunk, int column) {
  const uint64_t key = key_of(table, chunk, column);
  if (const auto found = index_.find(key); found != index_.end()) {
    entries_.splice(entries_.begin(), entries_, found->second);
    return entries_.front().values;
  }
  auto values = std::make_shared<std::vector<int64_t>>();
  TACHO_TRY(decode(table, chunk, column, *values));
  ++decoded_;
  keep(key, values);
  return entries_.front().values;
}

Result<int64_t> Store::row_of(int table, int64_t id) {
  if (chunks(table) == 0) return -1;
  const int64_t first = chunk(table, 0).first_row;
  return id >= first && id < first + rows(table) ? id : -1;
}

Result<bool> Store::decode_together(int, size_t, std::span<const int16_t>, std::span<std::vector<int64_t>>) {
  return false;
}

Status Store::prefetch(int table, size_t chunk, std::span<const int16_t> columns) {
  if (columns.size() < 2) return {};
  for (const int16_t column : columns)
    if (index_.contains(key_of(table, chunk, column))) return {};
  std::vector<std::vector<int64_t>> values(columns.size());
  TACHO_ASSIGN(const bool done, decode_together(table, chunk, columns, values));
  if (!done) return {};
  for (size_t i = 0; i < columns.size(); ++i)
    keep(key_of(table, chunk, columns[i]), std::make_shared<const std::vector<int64_t>>(std::move(values[i])));
  decoded_ += columns.size();
  return {};
}

TraceStore::TraceStore(std::shared_ptr<const trace::Trace> trace) : trace_(std::move(trace)) {
  for (size_t table = 0; table < event::kFactTables; ++table) {
    int64_t first = 0;
    for (const trace::Chunk& chunk : trace_->chunks(static_cast<Table>(table))) {
      first_rows_[table].push_back(first);
      first += chunk.rows;
    }
  }
}

int64_t TraceStore::rows(int table) const {
  const int64_t rows = trace_->rows(static_cast<Table>(table));
  return dimension(table) ? std::max<int64_t>(rows - 1, 0) : rows;
}

size_t TraceStore::chunks(int table) const {
  if (!dimension(table)) return first_rows_[static_cast<size_t>(table)].size();
  return (static_cast<size_t>(rows(table)) + kDimensionBatch - 1) / kDimensionBatch;
}

ChunkInfo TraceStore::chunk(int table, size_t chunk) const {
  if (dimension(table)) {
    const auto first = static_cast<int64_t>(chunk * kDimensionBatch) + 1;
    return {static_cast<uint32_t>(std::min<int64_t>(static_cast<int64_t>(kDimensionBatch), rows(table) + 1 - first)),
            first, false, 0, 0};
  }
  const trace::Chunk& info = trace_->chunks(static_cast<Table>(table))[chunk];
  return {info.rows, first_rows_[static_cast<size_t>(table)][chunk], event::is_timed(static_cast<Table>(table)),
          info.min_start, info.max_start};
}

bool TraceStore::entries(int table, size_t chunk, int column, std::vector<int64_t>& values) const {
  if (dimension(table) || !event::is_timed(static_cast<Table>(table))) return false;
  const bool dim = column == event::column::Fact::dim;
  if (!dim && column != event::column::Fact::track) return false;
  const auto summaries = trace_->summaries(static_cast<Table>(table), chunk);
  if (!summaries) return false;
  values.clear();
  for (const trace::Summary& summary : *summaries) values.push_back(dim ? summary.dim : summary.track);
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return true;
}

std::unique_ptr<trace::TimeCursor> TraceStore::by_time(int table, std::span<const int> columns, int64_t from,
                                                       int64_t to) const {
  if (dimension(table)) return nullptr;
  return std::make_unique<trace::TimeCursor>(*trace_, static_cast<Table>(table), columns, from, to);
}

Status TraceStore::decode(int table, size_t chunk, int column, std::vector<int64_t>& values) {
  if (!dimension(table)) {
    TACHO_TRY(trace_->decode(static_cast<Table>(table), chunk, column, values));
    // Like SQLite: NaN is NULL.
    if (event::table_info(static_cast<Table>(table)).columns[static_cast<size_t>(column)].type == event::Type::kDouble)
      for (int64_t& value : values)
        if (std::isnan(std::bit_cast<double>(value))) value = kUnknown;
    return {};
  }
  const ChunkInfo info = this->chunk(table, chunk);
  values.resize(info.rows);
  for (uint32_t i = 0; i < info.rows; ++i)
    values[i] = trace_->cell(static_cast<Table>(table), info.first_row + i, column);
  return {};
}

int Relation::column(std::string_view column_name) const {
  for (size_t i = 0; i < columns.size(); ++i)
    if (columns[i].name.size() == column_name.size() &&
        sqlite3_strnicmp(columns[i].name.data(), column_name.data(), static_cast<int>(column_name.size())) == 0)
      return static_cast<int>(i);
  return -1;
}

int64_t Relation::rows(const Store& store) const {
  int64_t sum = 0;
  for (const Part& part : parts) sum += store.rows(part.table);
  return sum;
}

bool Judge::operator()(int64_t value) {
  if (constraint_.never) return false;
  if (value == kUnknown) return false;  // NULL compares with nothing
  if (column_.type == ValueType::kText) {
    if (constraint_.type != ValueType::kText) return true;  // SQLite judges by its rules for mixed types
    const auto found = judged_.find(value);
    if (found != judged_.end()) return found->second;
    if (judged_.size() >= kMostKnown) judged_.clear();
    const bool verdict = judge(column_.text(value, scratch_));
    judged_.emplace(value, verdict);
    return verdict;
  }
  if (constraint_.type == ValueType::kText) return true;
  if (column_.type == ValueType::kInteger && constraint_.type == ValueType::kInteger)
    return holds(value < constraint_.integer ? -1 : value > constraint_.integer);
  const long double left = column_.type == ValueType::kReal
                               ? static_cast<long double>(__builtin_bit_cast(double, value))
                               : static_cast<long double>(value);
  const long double right = constraint_.type == ValueType::kReal ? static_cast<long double>(constraint_.real)
                                                                 : static_cast<long double>(constraint_.integer);
  return holds(left < right ? -1 : left > right);
}

bool Judge::judge(std::string_view text) const {
  switch (constraint_.comparison) {
    case Comparison::kLike:
    case Comparison::kGlob: {
      const std::string copy(text);
      return constraint_.comparison == Comparison::kLike
                 ? sqlite3_strlike(constraint_.text.c_str(), copy.c_str(), 0) == 0
                 : sqlite3_strglob(constraint_.text.c_str(), copy.c_str()) == 0;
    }
    default:
      return holds(compare_texts(text, constraint_.text));
  }
}

bool Judge::holds(int order) const {
  switch (constraint_.comparison) {
    case Comparison::kEqual:
      return order == 0;
    case Comparison::kNotEqual:
      return order != 0;
    case Comparison::kLess:
      return order < 0;
    case Comparison::kLessEqual:
      return order <= 0;
    case Comparison::kGreater:
      return order > 0;
    case Comparison::kGreaterEqual:
      return order >= 0;
    default:
      return true;
  }
}

// Rows grouped by the values of `few` columns: a temporary file holds the columns that the plan uses, group after
// group.
struct Scan::Grouped {
  bool numbered = false;                   // the last column is the row's id
  size_t width = 0;                        // values per row
  std::vector<int> columns;                // those stored
  std::vector<std::vector<int64_t>> keys;  // codes of the group's columns
  std::vector<uint64_t> counts;
  std::vector<uint64_t> starts;
  std::vector<uint32_t> order;  // groups in the order of the answer
  size_t group = 0;
  uint64_t given = 0;  // rows of the current group delivered so far
  int64_t* values = nullptr;
  size_t mapped = 0;
  std::vector<int64_t> small;

  ~Grouped() {
    if (mapped > 0) ::munmap(values, mapped);
  }
  Status allocate(uint64_t rows) {
    const uint64_t cells = rows * width;
    if (cells * 8 <= (16u << 20)) {
      small.resize(cells);
      values = small.data();
      return {};
    }
    TACHO_ASSIGN(TemporaryFile file, TemporaryFile::create());
    TACHO_ASSIGN(void* const data, file.map(cells * 8));
    values = static_cast<int64_t*>(data);
    mapped = cells * 8;
    return {};
  }
};

struct Scan::Timed {
  struct Source {
    std::unique_ptr<trace::TimeCursor> cursor;
    std::vector<int> columns;  // trace columns, in the cursor's order
    bool more = false;
  };
  std::vector<Source> sources;  // one per part
};

Scan::Scan(const Relation& relation, Store& store, ScanPlan plan)
    : relation_(relation), store_(store), plan_(std::move(plan)) {
  for (const Constraint& constraint : plan_.constraints) {
    if (constraint.never) done_ = true;
    judges_.emplace_back(constraint, relation_.columns[static_cast<size_t>(constraint.column)]);
  }
  own_.resize(kMaxBases);
  for (const Part& part : relation_.parts) {
    std::array<bool, kMaxBases> wanted{};
    const auto want = [&](const PartColumn& column) {
      for (const int16_t base : column.base)
        if (base >= 0) wanted[static_cast<size_t>(base)] = true;
    };
    for (const int column : plan_.used) want(part.columns[static_cast<size_t>(column)]);
    for (const OrderTerm& term : plan_.group_by) want(part.columns[static_cast<size_t>(term.column)]);
    for (const Constraint& constraint : plan_.constraints) want(part.columns[static_cast<size_t>(constraint.column)]);
    for (const PartColumn& keep : part.keep) want(keep);
    wanted_.emplace_back();
    for (size_t i = 0; i < wanted.size(); ++i)
      if (wanted[i]) wanted_.back().push_back(static_cast<int16_t>(i));
  }
}

Scan::~Scan() = default;

bool Scan::fail_with_status(Status status) {
  status_ = std::move(status);
  done_ = true;
  selection_.clear();
  position_ = 0;
  return false;
}

const int64_t* Scan::base_column(int16_t column) {
  const auto at = static_cast<size_t>(column);
  if (bases_[at] != nullptr) return bases_[at];
  auto values = store_.column(relation_.parts[part_].table, chunk_, column);
  if (!values || (*values)->size() < batch_rows_) {
    if (status_)
      status_ = values ? Status(fail("{}: a column is shorter than its chunk", store_.name()))
                       : Status(fail_with(std::move(values)));
    done_ = true;
    own_[at].assign(batch_rows_, 0);  // a value that any column may hold; never read
    return bases_[at] = own_[at].data();
  }
  held_[at] = std::move(*values);
  return bases_[at] = held_[at]->data();
}

int64_t Scan::base_value(int16_t column, uint32_t row) {
  if (column == kRowNumber) return first_row_ + row;
  return base_column(column)[row];
}

int64_t Scan::value_at(int column, uint32_t row) {
  if (grouped_) {
    for (size_t i = 0; i < plan_.group_by.size(); ++i)
      if (plan_.group_by[i].column == column) return grouped_->keys[grouped_->order[grouped_->group]][i];
    for (size_t i = 0; i < grouped_->width; ++i)
      if (grouped_->columns[i] == column)
        return grouped_
            ->values[(grouped_->starts[grouped_->order[grouped_->group]] + grouped_->given - selection_.size() + row) *
                         grouped_->width +
                     i];
    return kUnknown;
  }
  const PartColumn& source = relation_.parts[part_].columns[static_cast<size_t>(column)];
  if (source.base[0] == kNoBase) return source.derive ? source.derive(nullptr) : kUnknown;
  int64_t base[kMostBases];
  base[0] = base_value(source.base[0], row);
  if (!source.derive) return base[0];
  for (size_t i = 1; i < kMostBases && source.base[i] != kNoBase; ++i) base[i] = base_value(source.base[i], row);
  return source.derive(base);
}

int64_t Scan::row_id() {
  if (timed_) {
    status_ = fail("rowid is not known of rows in order of time: select the column id");
    return 0;
  }
  if (grouped_) {
    if (!grouped_->numbered)
      if (Status status = number_groups(); !status) {
        status_ = std::move(status);
        return 0;
      }
    return value_at(kRowNumber, selection_[position_]);
  }
  return relation_.parts[part_].first_id + row_number(selection_[position_]);
}

// Groups the rows again, now with their ids, and continues where it was: the order stays the same.
Status Scan::number_groups() {
  const std::unique_ptr<Grouped> before = std::move(grouped_);
  const std::vector<uint32_t> selection = selection_;
  const size_t position = position_;
  next_part_ = next_chunk_ = 0;
  done_ = false;
  TACHO_TRY(group(true));
  grouped_->group = before->group;
  grouped_->given = before->given;
  selection_ = selection;
  position_ = position;
  done_ = false;
  return {};
}

// True if a chunk may hold a row that satisfies the constraints, as far as its directory entry and summaries tell.
bool Scan::chunk_may_match(size_t part_number, size_t chunk_number) {
  const Part& part = relation_.parts[part_number];
  if (plan_.constraints.empty()) return true;
  const ChunkInfo info = store_.chunk(part.table, chunk_number);
  std::vector<int64_t> entries;
  for (size_t i = 0; i < plan_.constraints.size(); ++i) {
    const Constraint& constraint = plan_.constraints[i];
    const ColumnInfo& column = relation_.columns[static_cast<size_t>(constraint.column)];
    const PartColumn& source = part.columns[static_cast<size_t>(constraint.column)];
    Judge& matches = judges_[i];
    if (source.base[0] == kNoBase) {  // the same for all rows of the part
      if (!matches(source.derive ? source.derive(nullptr) : kUnknown)) return false;
      continue;
    }
    const bool number = column.type == ValueType::kInteger && constraint.type == ValueType::kInteger;
    const auto excluded = [&](int64_t low, int64_t high) {
      switch (constraint.comparison) {
        case Comparison::kEqual:
          return constraint.integer < low || constraint.integer > high;
        case Comparison::kLess:
          return low >= constraint.integer;
        case Comparison::kLessEqual:
          return low > constraint.integer;
        case Comparison::kGreater:
          return high <= constraint.integer;
        case Comparison::kGreaterEqual:
          return high < constraint.integer;
        default:
          return false;
      }
    };
    if (number && column.id) {
      const int64_t first = part.first_id + info.first_row;
      if (excluded(first, first + info.rows - 1)) return false;
      continue;
    }
    if (number && column.time && info.timed) {
      const int64_t low = relation_.clock ? relation_.clock(info.min_start) : info.min_start;
      const int64_t high = relation_.clock ? relation_.clock(info.max_start) : info.max_start;
      if (excluded(low, high)) return false;
      continue;
    }
    if (!column.few || source.base[1] != kNoBase || source.base[0] < 0) continue;
    if (!store_.entries(part.table, chunk_number, source.base[0], entries)) continue;
    const bool any = std::any_of(entries.begin(), entries.end(),
                                 [&](int64_t base) { return matches(source.derive ? source.derive(&base) : base); });
    if (!any) return false;
  }
  return true;
}

void Scan::enter(size_t part, size_t chunk) {
  part_ = part;
  chunk_ = chunk;
  const ChunkInfo info = store_.chunk(relation_.parts[part].table, chunk);
  first_row_ = info.first_row;
  batch_rows_ = info.rows;
  bases_.fill(nullptr);
  for (auto& held : held_) held.reset();
  entered_ = true;
  if (Status ready = store_.prefetch(relation_.parts[part].table, chunk, wanted_[part]); !ready && status_) {
    status_ = std::move(ready);
    done_ = true;
  }
}

bool Scan::kept(uint32_t row) {
  for (const PartColumn& keep : relation_.parts[part_].keep) {
    int64_t base[kMostBases] = {};
    for (size_t i = 0; i < kMostBases && keep.base[i] != kNoBase; ++i) base[i] = base_value(keep.base[i], row);
    if (keep.derive(base) == 0) return false;
  }
  return true;
}

void Scan::gather(int column, std::vector<int64_t>& values) {
  const size_t count = selection_.size();
  values.resize(count);
  if (!grouped_) {
    const PartColumn& source = relation_.parts[part_].columns[static_cast<size_t>(column)];
    if (source.base[0] >= 0 && (source.base[1] == kNoBase || !source.derive)) {
      const int64_t* const base = base_column(source.base[0]);
      if (!source.derive) {
        for (size_t i = 0; i < count; ++i) values[i] = base[selection_[i]];
        return;
      }
      int64_t last = 0, made = 0;
      bool have = false;
      for (size_t i = 0; i < count; ++i) {
        const int64_t value = base[selection_[i]];
        if (!have || value != last) {
          last = value;
          made = source.derive(&last);
          have = true;
        }
        values[i] = made;
      }
      return;
    }
  }
  for (size_t i = 0; i < count; ++i) values[i] = value_at(column, selection_[i]);
}

void Scan::select() {
  selection_.resize(batch_rows_);
  std::iota(selection_.begin(), selection_.end(), 0u);
  const Part& part = relation_.parts[part_];
  for (size_t i = 0; i < judges_.size() && !selection_.empty(); ++i) {
    const int column = plan_.constraints[i].column;
    Judge& matches = judges_[i];
    size_t kept = 0;
    const PartColumn& source = part.columns[static_cast<size_t>(column)];
    if (source.base[0] != kNoBase && source.base[0] != kRowNumber && source.base[1] == kNoBase) {
      // Derived from one stored value: judges runs of equal values once.
      const int64_t* const base = base_column(source.base[0]);
      int64_t last = 0;
      bool verdict = false, judged = false;
      for (const uint32_t row : selection_) {
        if (!judged || base[row] != last) {
          last = base[row];
          verdict = matches(source.derive ? source.derive(&last) : last);
          judged = true;
        }
        if (verdict) selection_[kept++] = row;
      }
    } else {
      for (const uint32_t row : selection_)
        if (matches(value_at(column, row))) selection_[kept++] = row;
    }
    selection_.resize(kept);
  }
  for (const PartColumn& keep : part.keep) {
    if (selection_.empty()) break;
    size_t kept = 0;
    if (keep.base[0] >= 0 && keep.base[1] == kNoBase) {
      const int64_t* const base = base_column(keep.base[0]);
      int64_t last = 0;
      bool verdict = false, judged = false;
      for (const uint32_t row : selection_) {
        if (!judged || base[row] != last) {
          last = base[row];
          verdict = keep.derive(&last) != 0;
          judged = true;
        }
        if (verdict) selection_[kept++] = row;
      }
    } else {
      for (const uint32_t row : selection_) {
        int64_t base[kMostBases] = {};
        for (size_t i = 0; i < kMostBases && keep.base[i] != kNoBase; ++i) base[i] = base_value(keep.base[i], row);
        if (keep.derive(base) != 0) selection_[kept++] = row;
      }
    }
    selection_.resize(kept);
  }
}

bool Scan::jump(size_t part, int64_t row_number) {
  const int table = relation_.parts[part].table;
  selection_.clear();
  position_ = 0;
  if (!entered_ || part != part_ || row_number < first_row_ || row_number >= first_row_ + batch_rows_) {
    size_t low = 0, high = store_.chunks(table);
    while (low < high) {
      const size_t middle = (low + high) / 2;
      const ChunkInfo info = store_.chunk(table, middle);
      if (info.first_row + info.rows <= row_number)
        low = middle + 1;
      else
        high = middle;
    }
    if (low >= store_.chunks(table) || store_.chunk(table, low).first_row > row_number) return false;
    enter(part, low);
  }
  const auto row = static_cast<uint32_t>(row_number - first_row_);
  if (!kept(row)) return false;
  selection_.push_back(row);
  return true;
}

bool Scan::jump_to_id(int64_t id) {
  for (size_t part = relation_.parts.size(); part-- > 0;) {
    const Part& here = relation_.parts[part];
    if (store_.chunks(here.table) == 0) continue;
    const int64_t first = store_.chunk(here.table, 0).first_row;
    const int64_t row_number = id - here.first_id;
    if (row_number >= first && row_number < first + store_.rows(here.table)) return jump(part, row_number);
  }
  selection_.clear();
  position_ = 0;
  return false;
}

bool Scan::next_natural() {
  while (!done_) {
    while (next_part_ < relation_.parts.size() && next_chunk_ >= store_.chunks(relation_.parts[next_part_].table)) {
      ++next_part_;
      next_chunk_ = 0;
    }
    if (next_part_ >= relation_.parts.size()) {
      done_ = true;
      break;
    }
    const size_t part = next_part_, chunk = next_chunk_++;
    if (!chunk_may_match(part, chunk)) continue;
    enter(part, chunk);
    select();
    if (!status_) break;
    if (selection_.empty()) continue;
    position_ = 0;
    return true;
  }
  selection_.clear();
  position_ = 0;
  return false;
}

bool Scan::next_batch() {
  if (!plan_.group_by.empty()) return next_grouped();
  if (plan_.by_time) return next_timed();
  return next_natural();
}

// `numbered`: also stores the row ids, which statements rarely need.
Status Scan::group(bool numbered) {
  auto grouped = std::make_unique<Grouped>();
  const size_t terms = plan_.group_by.size();
  for (const int column : plan_.used) {
    const bool of_key = std::any_of(plan_.group_by.begin(), plan_.group_by.end(),
                                    [&](const OrderTerm& term) { return term.column == column; });
    if (!of_key) grouped->columns.push_back(column);
  }
  grouped->numbered = numbered;
  if (numbered) grouped->columns.push_back(kRowNumber);
  grouped->width = grouped->columns.size();
  // Codes with equal texts count as one value.
  std::vector<tsl::robin_map<int64_t, int64_t>> canonical(terms);
  std::vector<std::map<std::string, int64_t, std::less<>>> texts(terms);
  std::map<std::vector<int64_t>, uint32_t> groups;
  std::string scratch;
  std::vector<int64_t> key(terms), last_codes(terms), codes(terms);
  uint32_t last_group = 0;
  bool have_last = false;
  const auto group_of = [&](uint32_t row) {
    for (size_t i = 0; i < terms; ++i) codes[i] = value_at(plan_.group_by[i].column, row);
    if (have_last && codes == last_codes) return last_group;
    for (size_t i = 0; i < terms; ++i) {
      const int column = plan_.group_by[i].column;
      key[i] = codes[i];
      if (relation_.columns[static_cast<size_t>(column)].type != ValueType::kText || codes[i] == kUnknown) continue;
      const auto found = canonical[i].find(codes[i]);
      if (found != canonical[i].end()) {
        key[i] = found->second;
      } else {
        key[i] = texts[i].try_emplace(std::string(text(column, codes[i], scratch)), codes[i]).first->second;
        canonical[i].emplace(codes[i], key[i]);
      }
    }
    const auto [found, fresh] = groups.try_emplace(key, static_cast<uint32_t>(grouped->keys.size()));
    if (fresh) {
      grouped->keys.push_back(key);
      grouped->counts.push_back(0);
    }
    last_codes = codes;
    last_group = found->second;
    have_last = true;
    return last_group;
  };
  uint64_t rows = 0;
  while (next_natural()) {
    for (const uint32_t row : selection_) ++grouped->counts[group_of(row)];
    rows += selection_.size();
  }
  TACHO_TRY(Status(status_));
  const size_t count = grouped->keys.size();
  grouped->starts.resize(count);
  uint64_t start = 0;
  for (size_t i = 0; i < count; ++i) {
    grouped->starts[i] = start;
    start += grouped->counts[i];
  }
  if (grouped->width > 0 && rows > 0) {
    TACHO_TRY(grouped->allocate(rows));
    std::vector<uint64_t> next = grouped->starts;
    next_part_ = next_chunk_ = 0;
    done_ = false;
    while (next_natural())
      for (const uint32_t row : selection_) {
        int64_t* const to = grouped->values + next[group_of(row)]++ * grouped->width;
        for (size_t i = 0; i < grouped->width; ++i)
          to[i] = grouped->columns[i] == kRowNumber ? relation_.parts[part_].first_id + row_number(row)
                                                    : value_at(grouped->columns[i], row);
      }
    TACHO_TRY(Status(status_));
  }
  grouped->order.resize(count);
  std::iota(grouped->order.begin(), grouped->order.end(), 0u);
  std::string left, right;
  std::stable_sort(grouped->order.begin(), grouped->order.end(), [&](uint32_t a, uint32_t b) {
    for (size_t i = 0; i < terms; ++i) {
      const OrderTerm& term = plan_.group_by[i];
      const ColumnInfo& column = relation_.columns[static_cast<size_t>(term.column)];
      const int64_t x = grouped->keys[a][i], y = grouped->keys[b][i];
      int order;
      if (x == y)
        order = 0;
      else if (x == kUnknown || y == kUnknown)
        order = x == kUnknown ? -1 : 1;  // NULLs first
      else if (column.type == ValueType::kText)
        order = compare_texts(column.text(x, left), column.text(y, right));
      else if (column.type == ValueType::kReal)
        order = __builtin_bit_cast(double, x) < __builtin_bit_cast(double, y) ? -1 : 1;
      else
        order = x < y ? -1 : 1;
      if (order != 0) return term.descending ? order > 0 : order < 0;
    }
    return false;
  });
  grouped_ = std::move(grouped);
  return {};
}

bool Scan::next_grouped() {
  if (!grouped_) {
    if (Status status = group(false); !status) return fail_with_status(std::move(status));
    done_ = false;
    grouped_->group = 0;
    grouped_->given = 0;
  }
  Grouped& grouped = *grouped_;
  while (grouped.group < grouped.order.size() && grouped.given >= grouped.counts[grouped.order[grouped.group]]) {
    ++grouped.group;
    grouped.given = 0;
  }
  if (grouped.group >= grouped.order.size()) {
    selection_.clear();
    position_ = 0;
    return false;
  }
  const uint64_t left = grouped.counts[grouped.order[grouped.group]] - grouped.given;
  const auto take = static_cast<size_t>(std::min<uint64_t>(left, 1 << 16));
  selection_.resize(take);
  std::iota(selection_.begin(), selection_.end(), 0u);
  grouped.given += take;
  position_ = 0;
  return true;
}

bool Scan::next_timed() {
  if (!timed_) {
    timed_ = std::make_unique<Timed>();
    // Constraints on the start narrow the cursors, if the relation uses trace time.
    int64_t from = INT64_MIN, to = INT64_MAX;
    if (!relation_.clock)
      for (const Constraint& constraint : plan_.constraints) {
        const ColumnInfo& column = relation_.columns[static_cast<size_t>(constraint.column)];
        if (!column.time || constraint.type != ValueType::kInteger) continue;
        const int64_t value = constraint.integer;
        const int64_t after = value == INT64_MAX ? value : value + 1;
        if (constraint.comparison == Comparison::kGreaterEqual || constraint.comparison == Comparison::kEqual)
          from = std::max(from, value);
        if (constraint.comparison == Comparison::kGreater) from = std::max(from, after);
        if (constraint.comparison == Comparison::kLess) to = std::min(to, value);
        if (constraint.comparison == Comparison::kLessEqual || constraint.comparison == Comparison::kEqual)
          to = std::min(to, after);
      }
    for (const Part& part : relation_.parts) {
      Timed::Source source;
      std::array<bool, kMaxBases> wanted{};
      wanted[event::column::Fact::start] = true;
      for (const int16_t column : wanted_[timed_->sources.size()]) wanted[static_cast<size_t>(column)] = true;
      for (size_t i = 0; i < wanted.size(); ++i)
        if (wanted[i]) source.columns.push_back(static_cast<int>(i));
      source.cursor = store_.by_time(part.table, source.columns, from, to);
      if (source.cursor == nullptr)
        return fail_with_status(fail("{}: rows cannot be had in order of time", store_.name()));
      source.more = !done_ && source.cursor->next();
      timed_->sources.push_back(std::move(source));
    }
  }
  while (!done_) {
    constexpr size_t kMost = 4096;
    size_t best = timed_->sources.size();
    int64_t limit = INT64_MAX;  // earliest start among the other parts' next rows
    for (size_t i = 0; i < timed_->sources.size(); ++i) {
      const Timed::Source& source = timed_->sources[i];
      if (!source.more) continue;
      if (best == timed_->sources.size() || source.cursor->start() < timed_->sources[best].cursor->start()) {
        if (best != timed_->sources.size()) limit = std::min(limit, timed_->sources[best].cursor->start());
        best = i;
      } else {
        limit = std::min(limit, source.cursor->start());
      }
    }
    if (best == timed_->sources.size()) break;
    Timed::Source& source = timed_->sources[best];
    part_ = best;
    bases_.fill(nullptr);
    for (const int column : source.columns) own_[static_cast<size_t>(column)].clear();
    uint32_t rows = 0;
    while (source.more && rows < kMost && (rows == 0 || source.cursor->start() <= limit)) {
      const std::span<const int64_t> row = source.cursor->row();
      for (size_t i = 0; i < source.columns.size(); ++i) own_[static_cast<size_t>(source.columns[i])].push_back(row[i]);
      ++rows;
      source.more = source.cursor->next();
    }
    if (!source.more)
      if (Status status = source.cursor->status(); !status) return fail_with_status(std::move(status));
    for (const int column : source.columns)
      bases_[static_cast<size_t>(column)] = own_[static_cast<size_t>(column)].data();
    batch_rows_ = rows;
    first_row_ = 0;
    select();
    if (selection_.empty()) continue;
    position_ = 0;
    return true;
  }
  for (const Timed::Source& source : timed_->sources)
    if (Status status = source.cursor->status(); !status) return fail_with_status(std::move(status));
  selection_.clear();
  position_ = 0;
  return false;
}

RowReader::RowReader(const Relation& relation, Store& store, std::vector<int> columns)
    : relation_(relation), store_(store), columns_(std::move(columns)), memos_(columns_.size()) {
  for (const Part& part : relation_.parts) {
    std::array<bool, kMostColumns> wanted{};
    const auto want = [&](const PartColumn& column) {
      for (const int16_t base : column.base)
        if (base >= 0) wanted[static_cast<size_t>(base)] = true;
    };
    for (const int column : columns_) want(part.columns[static_cast<size_t>(column)]);
    for (const PartColumn& keep : part.keep) want(keep);
    wanted_.emplace_back();
    for (size_t i = 0; i < wanted.size(); ++i)
      if (wanted[i]) wanted_.back().push_back(static_cast<int16_t>(i));
  }
  for (Place& place : places_) {
    place.held.resize(kMostColumns);
    place.bases.resize(kMostColumns);
  }
}

const int64_t* RowReader::base(int16_t column) {
  const auto which = static_cast<size_t>(column);
  if (at_->bases[which] != nullptr) return at_->bases[which];
  auto values = store_.column(relation_.parts[at_->part].table, at_->chunk, column);
  if (!values || (*values)->size() < at_->rows) {
    if (status_)
      status_ = values ? Status(fail("{}: a column is shorter than its chunk", store_.name()))
                       : Status(fail_with(std::move(values)));
    nothing_.assign(at_->rows, kUnknown);
    return nothing_.data();
  }
  at_->held[which] = std::move(*values);
  return at_->bases[which] = at_->held[which]->data();
}

int64_t RowReader::derived(const PartColumn& source) {
  if (source.base[0] == kNoBase) return source.derive ? source.derive(nullptr) : kUnknown;
  int64_t values[kMostBases];
  for (size_t i = 0; i < kMostBases && source.base[i] != kNoBase; ++i)
    values[i] = source.base[i] == kRowNumber ? at_->first_row + row_ : base(source.base[i])[row_];
  return source.derive ? source.derive(values) : values[0];
}

bool RowReader::enter(size_t part, int64_t row_number) {
  const int table = relation_.parts[part].table;
  size_t low = 0, high = store_.chunks(table);
  ChunkInfo info;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    info = store_.chunk(table, middle);
    if (info.first_row + info.rows <= row_number)
      low = middle + 1;
    else
      high = middle;
  }
  if (low >= store_.chunks(table)) return false;
  info = store_.chunk(table, low);
  if (row_number < info.first_row) return false;
  at_ = &places_[(low + part) % kPlaces];
  if (at_->part == part && at_->chunk == low) return true;
  at_->part = part;
  at_->chunk = low;
  at_->first_row = info.first_row;
  at_->rows = info.rows;
  std::fill(at_->bases.begin(), at_->bases.end(), nullptr);
  for (Values& held : at_->held) held.reset();
  if (Status ready = store_.prefetch(table, low, wanted_[part]); !ready && status_) status_ = std::move(ready);
  return true;
}

bool RowReader::seek(int64_t id) {
  if (have_last_ && id == last_id_) return found_;
  have_last_ = true;
  last_id_ = id;
  found_ = false;
  const size_t parts = relation_.parts.size();
  for (size_t i = 0; i < parts && status_; ++i) {
    const size_t part = (last_part_ + i) % parts;
    const Part& here = relation_.parts[part];
    auto row = store_.row_of(here.table, id - here.first_id);
    if (!row) {
      status_ = fail_with(std::move(row));
      return false;
    }
    if (*row < 0) continue;
    if (at_ == nullptr || at_->part != part || *row < at_->first_row || *row >= at_->first_row + at_->rows)
      if (!enter(part, *row)) continue;
    last_part_ = part;
    row_ = static_cast<uint32_t>(*row - at_->first_row);
    for (const PartColumn& keep : here.keep)
      if (derived(keep) == 0) return false;
    return found_ = static_cast<bool>(status_);
  }
  return false;
}

int64_t RowReader::value(size_t which) {
  const PartColumn& source = relation_.parts[at_->part].columns[static_cast<size_t>(columns_[which])];
  if (source.base[0] < 0 || source.base[1] != kNoBase || !source.derive) return derived(source);
  const int64_t from = base(source.base[0])[row_];
  Memo& memo = memos_[which];
  if (memo.part != at_->part || memo.from != from) memo = {at_->part, from, source.derive(&from)};
  return memo.made;
}

}  // namespace tacho::query
