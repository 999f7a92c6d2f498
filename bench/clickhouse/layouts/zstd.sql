-- Columns of projections have the table's default codec, which is otherwise LZ4.
ALTER TABLE spans MODIFY SETTING default_compression_codec = 'ZSTD(3)';
