package io.github.traceflake.otel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.TraceFlags;
import io.opentelemetry.api.trace.TraceState;
import io.opentelemetry.api.trace.propagation.W3CTraceContextPropagator;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.propagation.TextMapGetter;
import io.opentelemetry.context.propagation.TextMapPropagator;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/** The rules of testdata/headers.json. */
class XTraceIdPropagatorTest {
  static final List<Vectors> rules = Vectors.read("headers.json").parts("cases");
  static final Map<String, Object> ids = Vectors.read("headers.json").part("ids").json();

  private static final TextMapGetter<Map<String, List<String>>> GETTER =
      new TextMapGetter<>() {
        @Override
        public Iterable<String> keys(Map<String, List<String>> carrier) {
          return carrier.keySet();
        }

        @Override
        public String get(Map<String, List<String>> carrier, String key) {
          List<String> values = carrier.getOrDefault(key, List.of());
          return values.isEmpty() ? null : values.get(0);
        }

        @Override
        public Iterator<String> getAll(Map<String, List<String>> carrier, String key) {
          return carrier.getOrDefault(key, List.of()).iterator();
        }
      };

  private static String expand(String text) {
    for (String name : ids.keySet()) {
      text = text.replace("$" + name, (String) ids.get(name));
    }
    return text;
  }

  private static TextMapPropagator propagator(Vectors options) {
    var builder = XTraceIdPropagator.builder();
    if (options.has("header")) {
      builder.setHeader(options.text("header"));
    }
    if (options.has("encoding")) {
      builder.setB3Encoding(
          XTraceIdPropagator.B3Encoding.valueOf(options.text("encoding").toUpperCase(Locale.ROOT)));
    }
    var ours =
        builder
            .setB3TraceId64(options.has("b3TraceID64"))
            .setDeferredSampled(options.has("deferredSampled"))
            .setDashes(options.has("dashes"))
            .build();
    var w3c = W3CTraceContextPropagator.getInstance();
    if (!options.has("traceContext")) {
      return ours;
    }
    return options.text("traceContext").equals("first")
        ? TextMapPropagator.composite(w3c, ours)
        : TextMapPropagator.composite(ours, w3c);
  }

  /** SDKs before 1.50 read only the first value of a header. */
  private static boolean oneValue(Vectors rule) {
    Vectors incoming = rule.part("incoming");
    return incoming.json().keySet().stream().allMatch(name -> incoming.texts(name).size() == 1);
  }

  @ParameterizedTest
  @FieldSource
  void rules(Vectors rule) {
    boolean all =
        Arrays.stream(TextMapGetter.class.getMethods()).anyMatch(m -> m.getName().equals("getAll"));
    Assumptions.assumeTrue(all || oneValue(rule), "this SDK reads one value");
    Vectors options = rule.has("options") ? rule.part("options") : new Vectors(Map.of());
    TextMapPropagator propagator = propagator(options);
    Map<String, List<String>> incoming = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    Vectors headers = rule.part("incoming");
    for (String name : headers.json().keySet()) {
      incoming.put(
          name, headers.texts(name).stream().map(XTraceIdPropagatorTest::expand).toList());
    }
    Vectors want = rule.has("elsewhere") ? rule.part("elsewhere") : rule;
    Context context = propagator.extract(Context.root(), incoming, GETTER);
    SpanContext got = Span.fromContext(context).getSpanContext();

    String traceId = expand("$N");
    boolean sampled = false;
    if (want.has("extracted")) {
      Vectors extracted = want.part("extracted");
      traceId = expand(extracted.text("traceId"));
      sampled = extracted.json().get("sampled").equals(true);
      assertTrue(got.isRemote());
      assertEquals(traceId, got.getTraceId());
      assertEquals(expand(extracted.text("spanId")), got.getSpanId());
      assertEquals(sampled ? 1 : 0, got.getTraceFlags().asByte());
    } else {
      assertFalse(got.isValid());
    }
    assertEquals(expected(want, "forwarded"), injected(propagator, context));

    sampled &= !options.has("dropped");
    Span started = span(traceId, expand("$O"), sampled, false);
    assertEquals(expected(want, "injected"), injected(propagator, context.with(started)));
  }

  private static Map<String, String> expected(Vectors rule, String part) {
    Map<String, String> headers = new TreeMap<>();
    Vectors values = rule.part(part);
    values.json().keySet().forEach(name -> headers.put(name, expand(values.text(name))));
    return headers;
  }

  private static Map<String, String> injected(TextMapPropagator propagator, Context context) {
    Map<String, String> headers = new TreeMap<>();
    propagator.inject(context, headers, (carrier, key, value) -> carrier.put(key, value));
    headers.remove("traceparent");
    return headers;
  }

  private static Span span(String traceId, String spanId, boolean sampled, boolean remote) {
    TraceFlags flags = sampled ? TraceFlags.getSampled() : TraceFlags.getDefault();
    TraceState state = TraceState.getDefault();
    return Span.wrap(
        remote
            ? SpanContext.createFromRemoteParent(traceId, spanId, flags, state)
            : SpanContext.create(traceId, spanId, flags, state));
  }

  /** W3C's span has a tracestate and the random flag, which B3 does not have. */
  @Test
  void theSameSpanOfAnotherPropagatorStays() {
    SpanContext w3c =
        SpanContext.createFromRemoteParent(
            expand("$T"),
            expand("$S"),
            TraceFlags.fromByte((byte) 3),
            TraceState.builder().put("v", "1").build());
    for (String b3 : List.of("$T-$S", "$T-$S-1", "$H-$S-1")) {
      Map<String, List<String>> incoming =
          Map.of("x-trace-id", List.of(expand("$T")), "b3", List.of(expand(b3)));
      Context context = Context.root().with(Span.wrap(w3c));
      context = XTraceIdPropagator.builder().build().extract(context, incoming, GETTER);
      assertEquals(w3c, Span.fromContext(context).getSpanContext());
    }
  }

  /** A second request in the same context, and a span of this process. */
  @Test
  void theLastRequestDecides() {
    var propagator = XTraceIdPropagator.builder().build();
    Context context = Context.root();
    for (String b3 : List.of("$T-$S-d", "$T-$P-0")) {
      context = propagator.extract(context, Map.of("b3", List.of(expand(b3))), GETTER);
    }
    assertEquals("0", injected(propagator, context).get("x-b3-sampled"));

    Span own = span(expand("$T"), expand("$O"), true, false);
    context = Context.root().with(own);
    Map<String, List<String>> undecided = Map.of("b3", List.of(expand("$T-$S")));
    context = propagator.extract(context, undecided, GETTER);
    assertFalse(Span.fromContext(context).getSpanContext().isSampled());
    assertEquals(own, Span.fromContext(propagator.extract(Context.root().with(own), Map.of(), GETTER)));
  }

  @Test
  void fieldsAreWhatIsInjected() {
    for (var encoding : XTraceIdPropagator.B3Encoding.values()) {
      var propagator = XTraceIdPropagator.builder().setB3Encoding(encoding).build();
      var written = new TreeSet<String>();
      for (String b3 : List.of("$T-$S-d", "$T-$S-0")) {
        Map<String, List<String>> incoming = Map.of("b3", List.of(expand(b3)));
        Context context = propagator.extract(Context.root(), incoming, GETTER);
        written.addAll(injected(propagator, context).keySet());
      }
      assertEquals(written, new TreeSet<>(propagator.fields()));
    }
  }

  @Test
  void headerNames() {
    for (String bad : List.of("", "a b", "x:y", "é", "b3", "X-B3-TraceId", "Traceparent")) {
      var builder = XTraceIdPropagator.builder();
      assertThrows(IllegalArgumentException.class, () -> builder.setHeader(bad), bad);
    }
    for (String good : List.of("X-Request-Id", "x_trace", "!#$%&'*+-.^_`|~")) {
      assertTrue(XTraceIdPropagator.builder().setHeader(good).build().fields().contains(good));
    }
  }

  @Test
  void nothingToDo() {
    var propagator = XTraceIdPropagator.builder().build();
    assertEquals(Context.root(), propagator.extract(null, Map.of(), GETTER));
    assertEquals(Context.root(), propagator.extract(Context.root(), Map.of(), null));
    propagator.inject(Context.root(), new ArrayList<>(), null);
  }
}
