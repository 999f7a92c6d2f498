DROP VIEW IF EXISTS `otel`.`otel_traces_trace_id_ts_mv` SYNC;

DROP TABLE IF EXISTS `otel`.`otel_traces_trace_id_ts` SYNC SETTINGS max_table_size_to_drop = 0;

CREATE VIEW IF NOT EXISTS `otel`.`otel_traces_trace_id_ts` AS
SELECT TraceId, toDateTime(min(Timestamp)) AS Start, toDateTime(max(Timestamp)) AS End
FROM `otel`.`otel_traces` WHERE TraceId != '' GROUP BY TraceId
SETTINGS use_skip_indexes_on_data_read = 0;

CREATE VIEW IF NOT EXISTS `otel`.`otel_traces_trace_id_ts_mv` AS
SELECT TraceId, Start, End FROM `otel`.`otel_traces_trace_id_ts`;
