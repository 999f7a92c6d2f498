package io.github.traceflake.otel;

import static java.lang.Long.parseUnsignedLong;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.opentelemetry.api.trace.SpanId;
import io.opentelemetry.api.trace.TraceId;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/** The vectors of testdata/format.json, with more threads. */
class TraceflakeIdGeneratorTest {
  static final Vectors format = Vectors.read("format.json");
  static final List<Vectors> ids = format.parts("ids");
  static final List<Vectors> generators = format.parts("generator");

  static long first(String traceId) {
    return parseUnsignedLong(traceId.substring(0, 16), 16);
  }

  static long second(String traceId) {
    return parseUnsignedLong(traceId.substring(16), 16);
  }

  @ParameterizedTest
  @FieldSource
  void ids(Vectors v) {
    long clear = first(v.text("id"));
    var generator =
        new TraceflakeIdGenerator(clear - 1, () -> v.number("unix_ms"), () -> v.hex("low"));
    assertEquals(v.text("id"), generator.generateTraceId());
  }

  @ParameterizedTest
  @FieldSource
  void generators(Vectors v) {
    long[] now = new long[1];
    var generator = new TraceflakeIdGenerator(v.hex("last"), () -> now[0], new RandomLongs());
    for (Vectors step : v.parts("steps")) {
      now[0] = step.number("unix_ms");
      long[] clears =
          LongStream.range(0, step.number("n"))
              .map(i -> first(generator.generateTraceId()))
              .toArray();
      if (step.has("clear")) {
        long clear = step.hex("clear");
        assertTrue(
            IntStream.range(0, clears.length).allMatch(i -> clears[i] == clear + i),
            step::toString);
      } else {
        assertRandom(clears);
      }
    }
    assertRandom(LongStream.range(0, 64).map(i -> second(generator.generateTraceId())).toArray());
    assertRandom(
        LongStream.range(0, 64)
            .map(i -> parseUnsignedLong(generator.generateSpanId(), 16))
            .toArray());
  }

  /** Each bit is 0 in some numbers and 1 in others. With 64 numbers that fails once in 10^17. */
  private static void assertRandom(long[] numbers) {
    assertEquals(0, Arrays.stream(numbers).reduce(-1, (a, b) -> a & b));
    assertEquals(-1, Arrays.stream(numbers).reduce(0, (a, b) -> a | b));
  }

  @Test
  void stoppedThread() {
    Vectors v = format.part("stopped");
    var now = new AtomicLong(v.number("unix_ms"));
    var meanwhile = new ArrayList<Long>();
    var generator = new TraceflakeIdGenerator[1];
    LongSupplier clock =
        () -> {
          long before = now.getAndSet(v.number("meanwhile_ms"));
          if (meanwhile.isEmpty()) {
            meanwhile.add(0L); // the clock is read within this call, too
            meanwhile.set(0, generator[0].nextClear());
          }
          return before;
        };
    generator[0] = new TraceflakeIdGenerator(0, clock, () -> 1);
    long stopped = generator[0].nextClear();
    assertEquals(
        v.texts("clears"),
        Stream.of(meanwhile.get(0), stopped).map(Long::toHexString).toList());
  }

  @Test
  void zeroIsDrawnAgain() {
    Vectors v = format.part("random");
    var draws = v.texts("draws").stream().map(x -> parseUnsignedLong(x, 16)).iterator();
    var generator =
        new TraceflakeIdGenerator(0, () -> ids.get(0).number("unix_ms"), draws::next);
    List<String> halves = new ArrayList<>();
    for (int i = 0; i < v.texts("halves").size(); i++) {
      halves.add(
          i % 2 == 0 ? generator.generateTraceId().substring(16) : generator.generateSpanId());
    }
    assertEquals(v.texts("halves"), halves);
  }

  @Test
  void threads() throws Exception {
    Vectors v = format.part("threads");
    for (int threads : new int[] {(int) v.number("threads"), 64}) {
      int n = (int) v.number("n") * 8 / threads;
      List<Long> clears =
          together(Executors.newFixedThreadPool(threads), threads, n, () -> v.number("unix_ms"));
      assertEquals(
          LongStream.range(0, (long) threads * n).map(i -> v.hex("clear") + i).boxed().toList(),
          clears.stream().sorted().toList());
    }
  }

  @Test
  void threadsWithAMovingClock() throws Exception {
    Vectors v = format.part("moving");
    int threads = (int) v.number("threads");
    var readings = new AtomicLong();
    LongSupplier clock =
        () ->
            v.number("unix_ms")
                + readings.getAndIncrement() / v.number("readings") * v.number("step_ms");
    together(Executors.newFixedThreadPool(threads), threads, (int) v.number("n"), clock);
  }

  @Test
  void virtualThreads() throws Exception {
    ExecutorService executor;
    try {
      executor =
          (ExecutorService)
              Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
    } catch (NoSuchMethodException e) {
      Assumptions.abort("JDK " + Runtime.version().feature() + " has no virtual threads");
      return;
    }
    together(executor, 10_000, 20, System::currentTimeMillis);
  }

  /** Generates trace and span IDs in tasks, checks that no half is repeated, and returns times. */
  private static List<Long> together(ExecutorService executor, int tasks, int n, LongSupplier clock)
      throws Exception {
    var generator = new TraceflakeIdGenerator(0, clock, new RandomLongs());
    var start = new CyclicBarrier(Math.min(tasks, 64));
    Callable<long[]> task =
        () -> {
          long[] made = new long[3 * n];
          start.await();
          for (int i = 0; i < made.length; i += 3) {
            String id = generator.generateTraceId();
            made[i] = first(id);
            made[i + 1] = second(id);
            made[i + 2] = parseUnsignedLong(generator.generateSpanId(), 16);
          }
          return made;
        };
    List<Long> clears = new ArrayList<>();
    Set<Long> distinct = new HashSet<>();
    try {
      // The barrier lets tasks through in groups, so their number is a multiple of its parties.
      int count = tasks - tasks % start.getParties();
      for (var made : executor.invokeAll(java.util.Collections.nCopies(count, task))) {
        for (int i = 0; i < made.get().length; i++) {
          assertTrue(distinct.add(made.get()[i]), "a half is there twice");
          if (i % 3 == 0) {
            clears.add(made.get()[i]);
          }
        }
      }
    } finally {
      executor.shutdownNow();
    }
    return clears;
  }

  @Test
  void manyHaveNoPattern() {
    Vectors v = format.part("many");
    var generator =
        new TraceflakeIdGenerator(0, () -> v.number("unix_ms"), new RandomLongs());
    long[] halves = new long[2 * (int) v.number("n")];
    for (int i = 0; i < halves.length; i += 2) {
      halves[i] = second(generator.generateTraceId());
      halves[i + 1] = parseUnsignedLong(generator.generateSpanId(), 16);
    }
    assertEquals(halves.length, LongStream.of(halves).distinct().count());
    for (int lag : new int[] {1, 2}) {
      long steps =
          IntStream.range(lag, halves.length)
              .mapToLong(i -> halves[i] - halves[i - lag])
              .distinct()
              .count();
      assertEquals(halves.length - lag, steps);
    }
  }

  @Test
  void theInstanceOfTheProcess() {
    var generator = TraceflakeIdGenerator.getInstance();
    assertSame(generator, TraceflakeIdGenerator.getInstance());
    assertTrue(generator.generatesRandomTraceIds());
    long before = System.currentTimeMillis();
    String id = generator.generateTraceId();
    long time = (first(id) >>> 23) + 1577836800000L;
    assertTrue(before <= time && time <= System.currentTimeMillis(), () -> id);
    assertTrue(TraceId.isValid(id));
    assertTrue(SpanId.isValid(generator.generateSpanId()));
  }
}
