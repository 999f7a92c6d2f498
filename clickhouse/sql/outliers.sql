    TraceId String CODEC(ZSTD(1)),
    Start DateTime64(9) CODEC(ZSTD(1)),
    End DateTime64(9) CODEC(ZSTD(1))
