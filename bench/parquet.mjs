// Writes a CSV file as Parquet with DuckDB, runs queries on it and reports what they read. The
// job is JSON on standard input, the result is JSON on standard output.
import { readFileSync } from 'node:fs';
import { DuckDBInstance } from '@duckdb/node-api';

const job = JSON.parse(readFileSync(0, 'utf8'));
const connection = await (await DuckDBInstance.create(':memory:')).connect();
const rows = async (sql) => (await connection.runAndReadAll(sql)).getRowsJson();

// read returns how many bytes the process has read; each query reads a file's metadata again.
const read = () => Number(/^rchar: (\d+)/.exec(readFileSync('/proc/self/io', 'utf8'))[1]);
await connection.run('SET threads = 1; SET enable_external_file_cache = false');

const columns = "{trace_id: 'VARCHAR', span_id: 'BIGINT', ms: 'BIGINT', service: 'VARCHAR', name: 'VARCHAR', duration: 'BIGINT'}";
await connection.run(`COPY (SELECT * FROM read_csv('${job.csv}', header = false, columns = ${columns})) TO '${job.parquet}' (FORMAT parquet)`);

const answer = { version: (await rows('SELECT version()'))[0][0], queries: [] };
const total = await rows(`SELECT count(*), sum(total_compressed_size) FROM parquet_metadata('${job.parquet}') WHERE path_in_schema = 'trace_id'`);
answer.groups = Number(total[0][0]);
for (const q of job.queries) {
  const cast = q.column === 'ms' ? 'BIGINT' : 'VARCHAR';
  const quote = (v) => (q.column === 'ms' ? v : `'${v}'`);
  const left = await rows(`SELECT count(*) FROM parquet_metadata('${job.parquet}') WHERE path_in_schema = '${q.column}'
    AND stats_min_value::${cast} <= ${quote(q.high)} AND stats_max_value::${cast} >= ${quote(q.low)}`);
  const before = read();
  const found = await rows(`SELECT count(*), sum(duration) FROM '${job.parquet}' WHERE ${q.column} BETWEEN ${quote(q.low)} AND ${quote(q.high)}`);
  answer.queries.push({ groups: Number(left[0][0]), bytes: read() - before, spans: Number(found[0][0]) });
}
console.log(JSON.stringify(answer));
