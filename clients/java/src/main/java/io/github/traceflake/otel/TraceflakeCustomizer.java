package io.github.traceflake.otel;

import io.opentelemetry.sdk.autoconfigure.spi.AutoConfigurationCustomizer;
import io.opentelemetry.sdk.autoconfigure.spi.AutoConfigurationCustomizerProvider;

/**
 * Makes the agent and the SDK's autoconfiguration use {@link TraceflakeIdGenerator}, without code.
 * The SDK does not load it if there is a configuration file; see {@link IdGeneratorComponent}.
 */
public final class TraceflakeCustomizer implements AutoConfigurationCustomizerProvider {
  /** Called by the SDK. */
  public TraceflakeCustomizer() {}

  @Override
  public void customize(AutoConfigurationCustomizer customizer) {
    customizer.addTracerProviderCustomizer(
        (provider, config) -> provider.setIdGenerator(TraceflakeIdGenerator.getInstance()));
  }
}
