package io.github.traceflake.otel;

import io.opentelemetry.api.incubator.config.DeclarativeConfigProperties;
import io.opentelemetry.context.propagation.TextMapPropagator;
import io.opentelemetry.sdk.autoconfigure.spi.internal.ComponentProvider;

/**
 * The propagator {@code xtraceid} in a configuration file. Its options are {@code header}, {@code
 * b3_encoding}, {@code b3_64bit}, {@code deferred_sampled} and {@code dashes}.
 *
 * <p>The SDK may still change this interface.
 */
public final class XTraceIdComponent implements ComponentProvider {
  /** Called by the SDK. */
  public XTraceIdComponent() {}

  @Override
  public Class<TextMapPropagator> getType() {
    return TextMapPropagator.class;
  }

  @Override
  public String getName() {
    return "xtraceid";
  }

  @Override
  public TextMapPropagator create(DeclarativeConfigProperties config) {
    return XTraceIdPropagator.builder().configure(config::getString, config::getBoolean).build();
  }
}
