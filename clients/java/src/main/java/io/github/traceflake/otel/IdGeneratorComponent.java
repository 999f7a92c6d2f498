package io.github.traceflake.otel;

import io.opentelemetry.api.incubator.config.DeclarativeConfigProperties;
import io.opentelemetry.sdk.autoconfigure.spi.internal.ComponentProvider;
import io.opentelemetry.sdk.trace.IdGenerator;

/**
 * The ID generator {@code traceflake} in a configuration file:
 *
 * <pre>{@code
 * tracer_provider:
 *   id_generator:
 *     traceflake:
 * }</pre>
 *
 * <p>The SDK may still change this interface.
 */
public final class IdGeneratorComponent implements ComponentProvider {
  /** Called by the SDK. */
  public IdGeneratorComponent() {}

  @Override
  public Class<IdGenerator> getType() {
    return IdGenerator.class;
  }

  @Override
  public String getName() {
    return "traceflake";
  }

  @Override
  public IdGenerator create(DeclarativeConfigProperties config) {
    return TraceflakeIdGenerator.getInstance();
  }
}
