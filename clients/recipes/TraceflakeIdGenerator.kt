import io.opentelemetry.sdk.trace.IdGenerator

/** For apps with OpenTelemetry's SDK: SdkTracerProvider.builder().setIdGenerator(this). */
class TraceflakeIdGenerator(private val ids: Traceflake = Traceflake()) : IdGenerator {
    override fun generateTraceId() = ids.traceId()

    override fun generateSpanId() = ids.spanId()

    // As of SDK 1.60.
    override fun generatesRandomTraceIds() = true
}
