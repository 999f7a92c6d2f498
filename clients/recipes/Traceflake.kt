import java.security.SecureRandom
import java.util.concurrent.atomic.AtomicLong

/** Trace IDs in the format of docs/format.md, for Android. Use one instance for each process. */
class Traceflake(last: Long = 0, private val clock: () -> Long = System::currentTimeMillis) {
    private val last = AtomicLong(last)
    private val random = SecureRandom()

    fun traceId() = hex(clearHalf() ?: randomHalf()) + hex(randomHalf())

    fun spanId() = hex(randomHalf())

    /** The headers of a request. Services that do not know x-trace-id read B3. */
    fun headers(traceId: String, spanId: String = spanId(), sampled: Boolean = true) = mapOf(
        "x-trace-id" to traceId,
        "X-B3-TraceId" to traceId.substring(16),
        "X-B3-SpanId" to spanId,
        "X-B3-Sampled" to if (sampled) "1" else "0",
    )

    private fun clearHalf(): Long? {
        while (true) {
            val before = last.get()
            val millis = clock() - 1_577_836_800_000
            if (millis < 0 || millis >= 1L shl 41) return null
            val floor = maxOf(millis.toULong() shl 23, 1UL)
            var next = before.toULong() + 1UL
            if (next < floor || next - floor >= (2000UL shl 23)) next = floor
            if (last.compareAndSet(before, next.toLong())) return next.toLong()
        }
    }

    private fun randomHalf() = generateSequence { random.nextLong() }.first { it != 0L }

    private fun hex(half: Long) = half.toULong().toString(16).padStart(16, '0')
}
