ALTER TABLE `otel`.`otel_traces` MODIFY TTL toDateTime(Timestamp) + toIntervalSecond(3600);

ALTER TABLE `otel`.`otel_traces_trace_id_ts` MODIFY TTL toDateTime(Start) + toIntervalSecond(3600);

DROP VIEW IF EXISTS `otel`.`otel_traces_trace_id_ts_mv` SYNC;

DROP TABLE IF EXISTS `otel`.`otel_traces_trace_id_ts` SYNC SETTINGS max_table_size_to_drop = 0;

ALTER TABLE `otel`.`otel_traces_local` ON CLUSTER `main` REMOVE TTL;
