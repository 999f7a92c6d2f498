package io.github.traceflake.otel;

import io.opentelemetry.context.propagation.TextMapPropagator;
import io.opentelemetry.sdk.autoconfigure.spi.ConfigProperties;
import io.opentelemetry.sdk.autoconfigure.spi.ConfigurablePropagatorProvider;

/**
 * The propagator {@code xtraceid} of {@code OTEL_PROPAGATORS}. Its options are {@code
 * otel.traceflake.header}, {@code .b3.encoding}, {@code .b3.64bit}, {@code .deferred.sampled} and
 * {@code .dashes}.
 */
public final class XTraceIdProvider implements ConfigurablePropagatorProvider {
  /** Called by the SDK. */
  public XTraceIdProvider() {}

  @Override
  public String getName() {
    return "xtraceid";
  }

  @Override
  public TextMapPropagator getPropagator(ConfigProperties config) {
    return XTraceIdPropagator.builder().configureByProperties(config::getString).build();
  }
}
