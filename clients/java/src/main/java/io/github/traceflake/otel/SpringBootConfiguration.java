package io.github.traceflake.otel;

import io.opentelemetry.sdk.trace.SdkTracerProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.env.Environment;

/**
 * Makes Spring Boot's own tracing, which is Micrometer's, use the ID generator and the propagator
 * without code. The options of the propagator are the properties of {@link XTraceIdProvider}.
 */
@AutoConfiguration(
    afterName = {
      "org.springframework.boot.actuate.autoconfigure.tracing.OpenTelemetryTracingAutoConfiguration",
      "org.springframework.boot.micrometer.tracing.opentelemetry.autoconfigure.OpenTelemetryTracingAutoConfiguration"
    })
@ConditionalOnClass(SdkTracerProvider.class)
public class SpringBootConfiguration {
  /** Called by Spring. */
  public SpringBootConfiguration() {}

  /** Of Spring Boot 3. */
  @Configuration(proxyBeanMethods = false)
  @ConditionalOnClass(
      org.springframework.boot.actuate.autoconfigure.tracing.SdkTracerProviderBuilderCustomizer
          .class)
  static class Boot3 {
    @Bean
    org.springframework.boot.actuate.autoconfigure.tracing.SdkTracerProviderBuilderCustomizer
        traceflakeIdGenerator() {
      return builder -> builder.setIdGenerator(TraceflakeIdGenerator.getInstance());
    }

    @Bean
    @ConditionalOnMissingBean
    XTraceIdPropagator traceflakePropagator(Environment environment) {
      return propagator(environment);
    }
  }

  /** Of Spring Boot 4. */
  @Configuration(proxyBeanMethods = false)
  @ConditionalOnClass(
      org.springframework.boot.micrometer.tracing.opentelemetry.autoconfigure
          .SdkTracerProviderBuilderCustomizer.class)
  static class Boot4 {
    @Bean
    org.springframework.boot.micrometer.tracing.opentelemetry.autoconfigure
            .SdkTracerProviderBuilderCustomizer
        traceflakeIdGenerator() {
      return builder -> builder.setIdGenerator(TraceflakeIdGenerator.getInstance());
    }

    @Bean
    @ConditionalOnMissingBean
    XTraceIdPropagator traceflakePropagator(Environment environment) {
      return propagator(environment);
    }
  }

  private static XTraceIdPropagator propagator(Environment environment) {
    return XTraceIdPropagator.builder()
        .configureByProperties(environment::getProperty)
        .build();
  }
}
