-- Two statements for an existing table of the exporter.
ALTER TABLE spans DROP INDEX idx_trace_id;

ALTER TABLE spans ADD INDEX idx_trace_id_text TraceId TYPE text(tokenizer = 'array');
