package io.github.traceflake.otel;

import io.opentelemetry.api.GlobalOpenTelemetry;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.propagation.TextMapGetter;
import io.opentelemetry.sdk.autoconfigure.AutoConfiguredOpenTelemetrySdk;
import java.util.Map;
import java.util.TreeMap;

/** As {@link Service}, but with spans of its own and the SDK's autoconfiguration. */
final class Autoconfigured {
  static final TextMapGetter<Map<String, String>> GETTER =
      new TextMapGetter<>() {
        @Override
        public Iterable<String> keys(Map<String, String> carrier) {
          return carrier.keySet();
        }

        @Override
        public String get(Map<String, String> carrier, String key) {
          return carrier.get(key);
        }
      };

  public static void main(String[] args) {
    var sdk = AutoConfiguredOpenTelemetrySdk.initialize().getOpenTelemetrySdk();
    var api = GlobalOpenTelemetry.get(); // with the agent its SDK, and ours then does nothing
    var propagator = api.getPropagators().getTextMapPropagator();
    for (String headers : args) {
      Map<String, String> incoming = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
      headers.lines().map(line -> line.split(": ")).forEach(h -> incoming.put(h[0], h[1]));
      var parent = propagator.extract(Context.root(), incoming, GETTER);
      var span =
          api.getTracer("test")
              .spanBuilder("GET /")
              .setParent(parent)
              .setSpanKind(SpanKind.SERVER)
              .startSpan();
      propagator.inject(
          parent.with(span), System.out, (out, key, value) -> out.println(key + ": " + value));
      span.end();
    }
    sdk.close();
  }
}
