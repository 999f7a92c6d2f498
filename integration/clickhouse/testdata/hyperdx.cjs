// Prints what HyperDX sends for a search page, a waterfall and a services page,
// made by its own published generator: npm install @hyperdx/common-utils@0.1.0,
// then node hyperdx.cjs. Its output is in tools.sql.
const { renderChartConfig } = require("@hyperdx/common-utils/dist/renderChartConfig");
const { parameterizedQueryToSql } = require("@hyperdx/common-utils/dist/clickhouse");

const columns = {
  Timestamp: "DateTime64(9)", TraceId: "String", SpanId: "String", ParentSpanId: "String", TraceState: "String",
  SpanName: "LowCardinality(String)", SpanKind: "LowCardinality(String)", ServiceName: "LowCardinality(String)",
  ResourceAttributes: "Map(LowCardinality(String), String)", SpanAttributes: "Map(LowCardinality(String), String)",
  Duration: "UInt64", StatusCode: "LowCardinality(String)", StatusMessage: "String",
};
const metadata = {
  getColumns: async () => Object.entries(columns).map(([name, type]) => ({ name, type, default_type: "" })),
  getColumn: async ({ column }) => columns[column] && { name: column, type: columns[column], default_type: "" },
  getMaterializedColumnsLookupTable: async () => new Map(),
  getTableMetadata: async () => ({ primary_key: "{primary key}", partition_key: "toDate(Timestamp)" }),
  getMapKeys: async () => [],
};
const source = {
  connection: "c", from: { databaseName: "{database}", tableName: "{table}" }, timestampValueExpression: "Timestamp",
  implicitColumnExpression: "SpanName",
};
const list = "Timestamp, ServiceName, StatusCode, round(Duration / 1e6), SpanName, TraceId, SpanId, ParentSpanId";
const to = new Date("2026-10-14T13:00:00Z"), ago = (minutes) => [new Date(to - minutes * 60e3), to];
const count = [{ aggFn: "count", aggCondition: "", valueExpression: "" }];
const quantile = (level) => ({ aggFn: "quantile", level, aggCondition: "", valueExpression: "Duration" });
const queries = {
  "list, 15 min": { ...source, select: list, where: "", whereLanguage: "lucene", orderBy: "Timestamp DESC", limit: { limit: 200 }, dateRange: ago(15) },
  "list of errors, 1 h": { ...source, select: list, where: "StatusCode:Error", whereLanguage: "lucene", orderBy: "Timestamp DESC", limit: { limit: 200 }, dateRange: ago(60) },
  "list of a service, 12 h": { ...source, select: list, where: "ServiceName:\"service-20\"", whereLanguage: "lucene", orderBy: "Timestamp DESC", limit: { limit: 200 }, dateRange: ago(720) },
  "list of a service, 15 min": { ...source, select: list, where: "ServiceName:\"service-20\"", whereLanguage: "lucene", orderBy: "Timestamp DESC", limit: { limit: 200 }, dateRange: ago(15) },
  "attribute, 1 h": { ...source, select: list, where: "SpanAttributes.user.id:\"77\"", whereLanguage: "lucene", orderBy: "Timestamp DESC", limit: { limit: 200 }, dateRange: ago(60) },
  "histogram, 15 min": { ...source, select: count, where: "", whereLanguage: "sql", groupBy: "StatusCode", granularity: "1 minute", dateRange: ago(15) },
  "waterfall": { ...source, select: list + ", SpanKind, SpanAttributes", where: "TraceId = '{trace}'", whereLanguage: "sql", orderBy: "Timestamp ASC", limit: { limit: 10000 }, dateRange: ago(120) },
  "latency of a service, 1 h": { ...source, select: [quantile(0.95), quantile(0.5)], where: "ServiceName = 'service-20' AND SpanKind IN ('Server')", whereLanguage: "sql", granularity: "1 minute", dateRange: ago(60) },
  "top endpoints of a service, 1 h": { ...source, select: [...count, quantile(0.95)], where: "ServiceName = 'service-20'", whereLanguage: "sql", groupBy: "SpanName", limit: { limit: 20 }, dateRange: ago(60) },
  "service map of errors, 1 h": { ...source, select: count, where: "StatusCode = 'Error'", whereLanguage: "sql", groupBy: "ServiceName", dateRange: ago(60) },
};
(async () => {
  for (const [name, config] of Object.entries(queries)) {
    const sql = parameterizedQueryToSql(await renderChartConfig(config, metadata)).replace(/\s+/g, " ").replace("{database}.", "");
    console.log(`-- HyperDX: ${name}\n${sql.trim()};`);
  }
})();
