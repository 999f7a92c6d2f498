-- Only OPTIMIZE merges. Otherwise CPU times scatter by a third.
ALTER TABLE spans MODIFY SETTING
    max_bytes_to_merge_at_max_space_in_pool = 1, max_bytes_to_merge_at_min_space_in_pool = 1;

ALTER TABLE spans_trace_id_ts MODIFY SETTING
    max_bytes_to_merge_at_max_space_in_pool = 1, max_bytes_to_merge_at_min_space_in_pool = 1;
