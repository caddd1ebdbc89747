// Reads an Arrow stream into DuckDB's table `answer` and prints the rows of a statement as JSON, numbers as texts: query.mjs FILE SQL.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createDuckDB, NODE_RUNTIME, VoidLogger } from '@duckdb/duckdb-wasm/blocking';

const [file, sql] = process.argv.slice(2);
const require = createRequire(import.meta.url);
const bundle = (kind) => ({
  mainModule: require.resolve(`@duckdb/duckdb-wasm/dist/duckdb-${kind}.wasm`),
  mainWorker: '',
});
const engine = await createDuckDB({ mvp: bundle('mvp'), eh: bundle('eh') }, new VoidLogger(), NODE_RUNTIME);
await engine.instantiate();
const connection = engine.connect();
connection.insertArrowFromIPCStream(readFileSync(file), { name: 'answer', schema: 'main', create: true });
const rows = connection.query(sql).toArray();
const text = (value) => (value === null || value === undefined ? null : String(value));
console.log(JSON.stringify(rows.map((row) => Object.entries(row.toJSON()).map(([, value]) => text(value)))));
