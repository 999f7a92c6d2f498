package io.github.traceflake.otel;

import io.opentelemetry.api.trace.SpanId;
import io.opentelemetry.api.trace.TraceId;
import io.opentelemetry.sdk.trace.IdGenerator;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;

/**
 * Generates trace IDs that begin with their time and sort by it. Span IDs are random.
 *
 * <pre>
 *  127                         87 86              64 63                            0
 * +------------------------------+------------------+-------------------------------+
 * | 41 bits: ms since 2020       | 23 bits sequence | 64 random bits                |
 * +------------------------------+------------------+-------------------------------+
 * </pre>
 *
 * <p>The trace IDs of a process increase, even if its clock steps back by less than two seconds;
 * after a larger step they follow the clock. While the clock is outside the years 2020 to 2089,
 * all bits are random. Generating an ID never blocks and never fails.
 */
public final class TraceflakeIdGenerator implements IdGenerator {
  private static final long EPOCH = 1_577_836_800_000L; // 2020-01-01T00:00:00Z
  private static final long LAST_MILLIS = (1L << 41) - 1;
  private static final int SEQUENCE_BITS = 23;
  private static final long HOLD = 2000L << SEQUENCE_BITS; // two seconds

  private static final RandomLongs RANDOM = new RandomLongs();
  private static final TraceflakeIdGenerator INSTANCE =
      new TraceflakeIdGenerator(0, new Clock(), RANDOM);

  static {
    Restore.onRestore(RANDOM);
  }

  private final AtomicLong lastClear; // the time and sequence of the last trace ID
  private final LongSupplier clock;
  private final LongSupplier random;

  TraceflakeIdGenerator(long lastClear, LongSupplier clock, LongSupplier random) {
    this.lastClear = new AtomicLong(lastClear);
    this.clock = clock;
    this.random = random;
  }

  /**
   * Returns the generator of this process. A second one would count from zero, too.
   *
   * @return the generator, which is safe for concurrent use
   */
  public static TraceflakeIdGenerator getInstance() {
    return INSTANCE;
  }

  @Override
  public String generateTraceId() {
    long clear = nextClear();
    return TraceId.fromLongs(clear == 0 ? nextRandom() : clear, nextRandom());
  }

  @Override
  public String generateSpanId() {
    return SpanId.fromLong(nextRandom());
  }

  /** Returns true: samplers may rely on the last 56 bits, and traceparent has the random flag. */
  @Override
  public boolean generatesRandomTraceIds() {
    return true;
  }

  /**
   * Discards the random numbers that are ready. CRaC and SnapStart call it. Call it where other
   * copies of this process may begin: until then all copies have the same numbers.
   */
  public static void afterRestore() {
    RANDOM.run();
  }

  /** Returns the clear half of a trace ID, or 0 if the clock is outside its range. */
  long nextClear() {
    while (true) {
      // The state is read before the clock. Otherwise a thread that was stopped in between would
      // mistake the progress of the others for a step of the clock.
      long last = lastClear.get();
      long millis = clock.getAsLong() - EPOCH;
      if (millis < 0 || millis > LAST_MILLIS) {
        return 0;
      }
      long floor = millis == 0 ? 1 : millis << SEQUENCE_BITS; // 64-bit IDs have a clear half of 0
      long next = last + 1;
      if (Long.compareUnsigned(next, floor) < 0
          || Long.compareUnsigned(next - floor, HOLD) >= 0) {
        next = floor;
      }
      if (lastClear.compareAndSet(last, next)) {
        return next;
      }
    }
  }

  private long nextRandom() {
    long bits;
    do {
      bits = random.getAsLong();
    } while (bits == 0); // an ID must not be zero
    return bits;
  }

  @Override
  public String toString() {
    return "TraceflakeIdGenerator";
  }

  /** The system's clock. The first lambda expression of a process costs as much as many IDs. */
  private static final class Clock implements LongSupplier {
    @Override
    public long getAsLong() {
      return System.currentTimeMillis();
    }
  }
}
