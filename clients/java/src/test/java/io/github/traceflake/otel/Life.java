package io.github.traceflake.otel;

import static java.lang.Long.parseUnsignedLong;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.opentelemetry.api.incubator.config.DeclarativeConfigProperties;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.propagation.TextMapPropagator;
import io.opentelemetry.sdk.autoconfigure.spi.internal.DefaultConfigProperties;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Field;
import java.lang.reflect.Proxy;
import java.security.ProviderException;
import java.security.Security;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.function.Executable;

/** The rows of testdata/life.json, by their names. */
final class Life {
  static final Map<String, Executable> ROWS =
      new TreeMap<>(
          Map.of(
              "two generators", Life::twoGenerators,
              "threads", Life::threads,
              "restore", Life::restore,
              "no lock", Life::noLock,
              "never blocks", Life::neverBlocks,
              "no random numbers", Life::noRandomNumbers,
              "clock steps", Life::clockSteps,
              "Turkish locale", Life::turkishLocale,
              "empty settings", Life::emptySettings,
              "misspelt settings", Life::misspeltSettings));

  private static final long NOW = 1_800_000_000_000L;

  /** Checks all rows in this process, in which the client may be a wrong one. */
  public static void main(String[] args) {
    for (var row : ROWS.entrySet()) {
      try {
        row.getValue().execute();
      } catch (Throwable e) {
        System.out.println(row.getKey() + ": " + e);
        System.exit(1);
      }
    }
    System.exit(0);
  }

  private static TraceflakeIdGenerator generator(RandomLongs numbers) {
    return new TraceflakeIdGenerator(0, () -> NOW, numbers);
  }

  /** Adds n low halves and span IDs of a generator, in turn, to those that were there before. */
  private static void generate(Set<String> halves, TraceflakeIdGenerator generator, int n) {
    for (int i = 0; i < n; i++) {
      assertTrue(halves.add(generator.generateTraceId().substring(16)), "a low half occurs twice");
      assertTrue(halves.add(generator.generateSpanId()), "a span ID occurs twice");
    }
  }

  private static void twoGenerators() {
    Set<String> halves = new HashSet<>();
    var one = generator(new RandomLongs());
    var other = generator(new RandomLongs());
    for (int i = 0; i < 5000; i++) {
      generate(halves, one, 1);
      generate(halves, other, 1);
    }
  }

  private static void threads() throws Exception {
    var generator = generator(new RandomLongs());
    var executor = Executors.newFixedThreadPool(64);
    try {
      List<Future<Set<String>>> made = new ArrayList<>();
      for (int i = 0; i < 64; i++) {
        made.add(
            executor.submit(
                () -> {
                  Set<String> halves = new HashSet<>();
                  generate(halves, generator, 1000);
                  return halves;
                }));
      }
      Set<String> all = new HashSet<>();
      for (var halves : made) {
        all.addAll(halves.get());
      }
      assertEquals(64 * 2000, all.size());
    } finally {
      executor.shutdownNow();
    }
  }

  private static List<Long> ready(RandomLongs numbers) throws Exception {
    List<Long> all = new ArrayList<>();
    var blocks =
        (java.util.concurrent.atomic.AtomicReferenceArray<?>) field(numbers, "blocks").get(numbers);
    for (int i = 0; i < blocks.length(); i++) {
      for (long number : (long[]) field(blocks.get(i), "numbers").get(blocks.get(i))) {
        all.add(number);
      }
    }
    return all;
  }

  private static Field field(Object object, String name) throws Exception {
    Field field = object.getClass().getDeclaredField(name);
    field.setAccessible(true);
    return field;
  }

  /**
   * By org.crac, which is real, and which the generator uses in an environment as that of AWS
   * Lambda. It finds the JDK's CRaC, which is a mock.
   */
  private static void restore() throws Exception {
    assertEquals("snap-start", System.getenv("AWS_LAMBDA_INITIALIZATION_TYPE"));
    var generator = TraceflakeIdGenerator.getInstance();
    var numbers = (RandomLongs) field(generator, "random").get(generator);
    boolean[] restored = new boolean[1];
    Restore.register("jdk.crac", Life.class.getClassLoader(), () -> restored[0] = true);
    for (Executable restore :
        List.<Executable>of(
            TraceflakeIdGenerator::afterRestore,
            () -> jdk.crac.Core.getGlobalContext().afterRestore(null))) {
      generator.generateTraceId();
      List<Long> before = ready(numbers);
      assertFalse(before.isEmpty());
      try {
        restore.execute();
      } catch (Throwable e) {
        throw new AssertionError(e);
      }
      assertTrue(ready(numbers).isEmpty());
      generator.generateTraceId();
      assertTrue(ready(numbers).stream().noneMatch(before::contains));
    }
    assertTrue(restored[0]);
  }

  private static void noLock() throws Exception {
    var numbers = new RandomLongs();
    var generator = generator(numbers);
    Collection<Object> monitors = new ArrayList<>();
    for (Object object : List.of(generator, numbers)) {
      monitors.add(object);
      monitors.add(object.getClass());
      for (Field field : object.getClass().getDeclaredFields()) {
        field.setAccessible(true);
        Object value = field.get(object);
        if (value != null && !(value instanceof Random)) { // a draw may take a lock
          monitors.add(value);
        }
      }
    }
    var worker = new Thread(() -> generate(new HashSet<>(), generator, 5000));
    worker.setDaemon(true);
    holding(
        monitors.iterator(),
        () -> {
          worker.start();
          while (worker.isAlive()) {
            var info = ManagementFactory.getThreadMXBean().getThreadInfo(worker.getId());
            boolean waits = info != null && info.getLockOwnerId() == Thread.currentThread().getId();
            assertFalse(waits, () -> "waits for " + info.getLockName());
            Thread.sleep(1);
          }
        });
  }

  private static void holding(Iterator<Object> monitors, Executable action) throws Exception {
    if (monitors.hasNext()) {
      synchronized (monitors.next()) {
        holding(monitors, action);
      }
      return;
    }
    try {
      action.execute();
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  private static void neverBlocks() {
    String name = "securerandom.strongAlgorithms";
    String before = Security.getProperty(name);
    Security.setProperty(name, "None:None");
    try {
      generate(new HashSet<>(), generator(new RandomLongs()), 5000);
    } finally {
      Security.setProperty(name, before);
    }
  }

  private static void noRandomNumbers() {
    var broken =
        new Random() {
          private static final long serialVersionUID = 1;

          @Override
          public void nextBytes(byte[] bytes) {
            throw new ProviderException("no entropy");
          }
        };
    generate(new HashSet<>(), generator(new RandomLongs(broken)), 5000);
  }

  private static void clockSteps() {
    long[] now = {NOW};
    var generator = new TraceflakeIdGenerator(0, () -> now[0], new RandomLongs());
    long first = clear(generator);
    now[0] -= 1999;
    assertEquals(first + 1, clear(generator));
    now[0] -= 2;
    assertEquals(now[0] - 1_577_836_800_000L, clear(generator) >>> 23);
  }

  private static long clear(TraceflakeIdGenerator generator) {
    return parseUnsignedLong(generator.generateTraceId().substring(0, 16), 16);
  }

  private static void turkishLocale() {
    Locale before = Locale.getDefault();
    Locale.setDefault(new Locale("tr", "TR"));
    try {
      assertEquals(
          fields(XTraceIdPropagator.B3Encoding.SINGLE),
          provided(Map.of("otel.traceflake.b3.encoding", "single")).fields());
      String id = "32D1F0A9C8000005A1B2C3D4E5F60718";
      Map<String, String> incoming =
          Map.of("x-trace-id", id, "b3", "00f067aa0ba902b7-53995c3f42cd8ad8-1");
      var propagator = XTraceIdPropagator.builder().build();
      Context context = propagator.extract(Context.root(), incoming, Autoconfigured.GETTER);
      assertEquals(
          id.toLowerCase(Locale.ROOT), Span.fromContext(context).getSpanContext().getTraceId());
    } finally {
      Locale.setDefault(before);
    }
  }

  private static Collection<String> fields(XTraceIdPropagator.B3Encoding encoding) {
    return XTraceIdPropagator.builder().setB3Encoding(encoding).build().fields();
  }

  private static TextMapPropagator provided(Map<String, String> properties) {
    return new XTraceIdProvider().getPropagator(DefaultConfigProperties.createFromMap(properties));
  }

  private static String property(String option) {
    return "otel.traceflake." + option.replace('_', '.');
  }

  /** Returns the propagator of a configuration file with one option. */
  private static TextMapPropagator inFile(String option, Object value) {
    var config =
        Proxy.newProxyInstance(
            Life.class.getClassLoader(),
            new Class<?>[] {DeclarativeConfigProperties.class},
            (proxy, method, arguments) -> {
              if (method.getName().equals("getPropertyKeys")) {
                return Set.of(option);
              }
              boolean asked = option.equals(arguments[0]) && method.getReturnType().isInstance(value);
              return asked ? value : null;
            });
    return new XTraceIdComponent().create((DeclarativeConfigProperties) config);
  }

  private static final Map<String, String> WRONG =
      Map.of(
          "header", "b3",
          "b3_encoding", "x",
          "b3_64bit", "yes",
          "deferred_sampled", "yes",
          "dashes", "yes");

  private static void emptySettings() {
    var unset = provided(Map.of()).fields();
    for (String option : WRONG.keySet()) {
      assertEquals(unset, provided(Map.of(property(option), " ")).fields());
      assertEquals(unset, inFile(option, "").fields());
      assertEquals(unset, inFile(option, null).fields());
    }
  }

  private static void misspeltSettings() {
    WRONG.forEach(
        (option, value) -> {
          String message = option + " is \"" + value + "\"";
          assertRefused(message, () -> provided(Map.of(property(option), value)));
          assertRefused(message, () -> inFile(option, value));
        });
    assertRefused("dashes is \"1\"", () -> inFile("dashes", 1L));
    assertRefused("b3_encodign", () -> inFile("b3_encodign", "single"));
  }

  private static void assertRefused(String message, Executable configure) {
    var refused = assertThrows(IllegalArgumentException.class, configure);
    assertTrue(refused.getMessage().contains(message), refused::getMessage);
  }
}
