package io.github.traceflake.otel;

import io.opentelemetry.api.incubator.config.DeclarativeConfigProperties;
import io.opentelemetry.context.propagation.TextMapPropagator;
import io.opentelemetry.sdk.autoconfigure.spi.internal.ComponentProvider;
import java.util.Objects;
import java.util.stream.Stream;

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
    XTraceIdPropagator.checkOptions(config.getPropertyKeys());
    return XTraceIdPropagator.builder()
        .configure(option -> text(config, option))
        .build();
  }

  private static String text(DeclarativeConfigProperties config, String option) {
    return Stream.of(config.getString(option), config.getBoolean(option), config.getLong(option))
        .filter(Objects::nonNull)
        .map(Object::toString)
        .findFirst()
        .orElse(null);
  }
}
