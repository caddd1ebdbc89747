// Reads an Arrow stream with Apache Arrow's JavaScript library and prints it as JSON: {"fields": [[name, type]], "batches": N,
// "rows": [[...]]}, whole numbers as texts. read.mjs FILE sums: "sums" in place of the rows: of numbers the sum, of texts
// their length in all, and how many values are null.
import { readFileSync } from 'node:fs';
import { RecordBatchReader } from 'apache-arrow';

const [file, sums] = process.argv.slice(2);
const reader = RecordBatchReader.from(readFileSync(file)).open();
const fields = reader.schema.fields.map((field) => [field.name, field.type.toString()]);
const rows = [];
const totals = fields.map(() => ({ sum: 0n, nulls: 0, rows: 0 }));
let batches = 0;
for (const batch of reader) {
  ++batches;
  const columns = fields.map((_, i) => batch.getChildAt(i));
  if (sums) {
    columns.forEach((column, i) => {
      totals[i].rows += batch.numRows;
      for (const value of column ?? []) {
        if (value === null) ++totals[i].nulls;
        else if (typeof value === 'bigint') totals[i].sum += value;
        else totals[i].sum = Number(totals[i].sum) + (typeof value === 'string' ? Buffer.byteLength(value) : value);
      }
    });
    continue;
  }
  for (let row = 0; row < batch.numRows; ++row)
    rows.push(
      columns.map((column) =>
        typeof column?.get(row) === 'bigint' ? String(column.get(row)) : (column?.get(row) ?? null),
      ),
    );
}
const plain = (total) => ({ ...total, sum: String(total.sum) });
console.log(JSON.stringify(sums ? { fields, batches, sums: totals.map(plain) } : { fields, batches, rows }));
