package io.github.traceflake.otel;

import static java.lang.Long.parseUnsignedLong;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.opentelemetry.exporter.logging.LoggingSpanExporter;
import io.opentelemetry.sdk.trace.IdGenerator;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.export.SimpleSpanProcessor;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import kotlin.jvm.functions.Function0;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/** The recipe in Kotlin, whose class is in no package and so cannot be imported. */
class RecipeTest {
  static final List<Vectors> generators = Vectors.read("format.json").parts("generator");

  private final Object traceflake;
  private final long[] now = new long[1];

  RecipeTest() throws Exception {
    traceflake = generator(0);
  }

  private Object generator(long last) throws Exception {
    Constructor<?> constructor =
        Class.forName("Traceflake").getConstructor(long.class, Function0.class);
    return constructor.newInstance(last, (Function0<Long>) () -> now[0]);
  }

  private static Object call(Object object, String name, Object... arguments) throws Exception {
    for (Method method : object.getClass().getMethods()) {
      if (method.getName().equals(name)) {
        return method.invoke(object, arguments);
      }
    }
    throw new NoSuchMethodException(name);
  }

  @ParameterizedTest
  @FieldSource
  void generators(Vectors v) throws Exception {
    Object traceflake = generator(v.hex("last"));
    Set<String> halves = new HashSet<>();
    for (Vectors step : v.parts("steps")) {
      now[0] = step.number("unix_ms");
      for (long i = 0; i < step.number("n"); i++) {
        String id = (String) call(traceflake, "traceId");
        assertTrue(id.matches("[0-9a-f]{32}"), id);
        if (step.has("clear")) {
          assertEquals(step.hex("clear") + i, parseUnsignedLong(id.substring(0, 16), 16));
        } else {
          assertTrue(halves.add(id.substring(0, 16)));
        }
        assertTrue(halves.add(id.substring(16)));
        assertTrue(halves.add((String) call(traceflake, "spanId")));
      }
    }
  }

  /** The SDK's interface, with a clock that is that of the recipe. */
  @Test
  void idGenerator() throws Exception {
    now[0] = 1_800_000_000_000L;
    var type = Class.forName("TraceflakeIdGenerator");
    var ids = type.getConstructor(traceflake.getClass()).newInstance(traceflake);
    var builder = SdkTracerProvider.builder().setIdGenerator((IdGenerator) ids);
    builder.addSpanProcessor(SimpleSpanProcessor.create(LoggingSpanExporter.create()));
    try (var provider = builder.build()) { // without a processor, the SDK does not trace
      var span = provider.get("test").spanBuilder("root").startSpan().getSpanContext();
      long clear = parseUnsignedLong(span.getTraceId().substring(0, 16), 16);
      assertEquals(now[0], (clear >>> 23) + 1_577_836_800_000L);
      assertTrue(span.isValid());
    }
  }

  @Test
  void headers() throws Exception {
    String id = (String) call(traceflake, "traceId");
    String span = (String) call(traceflake, "spanId");
    Map<String, String> want =
        Map.of(
            "x-trace-id", id,
            "X-B3-TraceId", id.substring(16),
            "X-B3-SpanId", span,
            "X-B3-Sampled", "1");
    assertEquals(want, call(traceflake, "headers", id, span, true));
  }
}
